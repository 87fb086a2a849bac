"""Decide: `mew proposals`, `approve`, `reject`, `questions`, `answer`, `rules` and `why`."""
