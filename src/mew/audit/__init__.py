"""The audit of a space: what happened in it, and the proof that this is what happened.

- `record/`    facts extracted from the journal, and the SQLite index that holds them
- `queries/`   search, chains, proposals, grants, effective capabilities, statistics
- `proof/`     verify the hash chain, sign checkpoints, export entries and check an export
- `playback/`  replay a recorded space
"""
