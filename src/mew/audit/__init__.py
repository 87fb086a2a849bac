"""The record of a space: what happened in it, and the proof that this is what happened.

- `facts`        what is said of an entry, about which `subjects`, with a digest of what was asked for (`sameness`)
- `index`        the facts of all spaces in a file, made from the journal;  `indexer`  does so while a gateway runs
- `questions`    who did what, as SQL;  `keeping`  the envelopes behind it
- `chain`        the life of a proposal, PURE;  `execution`  was what ran what was proposed, PURE
- `proposals`    what became of proposals, by the rules of `mew.proposals`, PURE
- `standing`     a space at some time;  `holders`  who holds what in it, PURE;  `giving`  what became of grants, PURE
- `violations`   what was refused, PURE;  `statistics`  proposals in numbers, PURE;  `figures`  gathers them
- `verify`       goes through the chain of a journal;  `exported`  through that of an export
- `witnesses`    what else says how the chain was;  `verdict`  what was found out
- `export`       a range of entries for others, in `lines` that prove themselves
- `checkpoints`  places in the chain, signed with one of the `keys`
"""
