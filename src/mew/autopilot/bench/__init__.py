"""Measures the autopilot against simulated reviewers with hidden policies: `mew autopilot bench`."""
