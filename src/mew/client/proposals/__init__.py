"""Proposals over a connection: propose, follow, review (§3.2, §3.3). What became of each is in `mew.proposals`.

- `proposer`, `runner`, `tracker`, `outcomes`  the proposer's side
- `review`       the reviewer's side
"""
