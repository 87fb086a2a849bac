"""Proposals: propose, follow, review, and keep the book (§3.2, §3.3, design §5).

- `book`, `record`, `decided`, `entries`  PURE: all proposals, and what became of each
- `catalogue`, `offer`  PURE: what tools there are, learned by watching;  `digest`
- `propose`, `proposal`, `pursuit`, `following`, `outcomes`  the proposer's side;  `review`  the reviewer's
- `stages`, `telling`  where one stands, for who waits
"""
