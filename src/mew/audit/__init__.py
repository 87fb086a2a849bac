"""The record of a space: what happened in it, and the proof that this is what happened.

- `verify`       goes through the chain of a journal;  `exported`  through that of an export
- `witnesses`    what else says how the chain was;  `verdict`  what was found out
- `export`       a range of entries for others, in `lines` that prove themselves
- `checkpoints`  places in the chain, signed with one of the `keys`
"""
