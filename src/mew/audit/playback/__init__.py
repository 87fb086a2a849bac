"""Playback of a recorded space from a journal or an export."""
