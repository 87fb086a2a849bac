"""Streams (§3.10): `streams` and `stream` to open, write and read; `reader`, `line` under them; `files`, `window`."""
