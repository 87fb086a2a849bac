"""One ordered log a space: what is in it happened, in that order, and nothing else did.

- `base`    the port every log fulfils
- `memory`  a log of this process, forgotten with it
"""
