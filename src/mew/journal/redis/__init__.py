"""Journals in Redis or Valkey, to which several nodes append.

- `address` PURE: where a Redis is
- `line`      one connection: commands in one write, replies and pushes in the order Redis executed them
- `scripts`   what runs inside Redis: append and announce in one step, refuse nodes that were declared dead
- `batch`     PURE: the events of a turn as bytes
- `checks`    PURE: whether a Redis would lose data
- `journal`   the log of one space: load, append, follow, snapshots
- `storage`   all journals of a node, its lease, and the nodes that died
"""
