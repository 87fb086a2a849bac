"""The history of a space, for reconnecting clients and history queries.

- `recent`       the last of it, in memory;  `correlation`  what is connected through `correlation_id` there
- `archive`      all of it: from memory and from the journal
- `query`        what one may ask, and the pages that answer;  `cursor`  positions in it
- `recovery`     the space and the recent history from a journal, and the snapshots that keep this short
"""
