"""Proposals over a connection: propose, follow, review (§3.2, §3.3, design §5). What became of each: `mew.proposals`.

- `live`  keeps the book of a connection current
- `propose`, `proposal`, `pursuit`, `following`, `outcomes`  the proposer's side;  `review`  the reviewer's
- `stages`, `telling`  where one stands, for who waits
"""
