"""One ordered log a space: what is in it happened, in that order, and nothing else did.

- `base`       the port every log fulfils
- `memory`     a log of this process, forgotten with it
- `sqlite`     a log in a file, written ahead; `journals` has one for each space of a gateway
- `record`     an entry as it is kept, in a chain of hashes
- `database`   the file;  `snapshots`  where to begin reading it
- `opening`    what is done with a file that is there, whole or damaged
- `salvage`    what can be read of a damaged one;  `wal`  what SQLite does not tell about it
"""
