"""Streams (§3.10): `streams` opens and finds them, `stream` writes, `reader` reads, `files` sends whole files."""
