"""One ordered log for each space, with the record of what was delivered: what is in it happened, and nothing else did.

- `port`       what a room and a gateway need of it
- `memory`     forgotten with the process
- `sqlite`     in one file for all spaces, written ahead: `database` is the file, `record` a batch in its hash chain
- `locator`    an index beside it: where the records of each space are
- `snapshots`  where a start begins;  `recovery`  opens what was left;  `salvage`  what can be read of a damaged file
- `wal`        what SQLite does not tell about its write-ahead log
- `retention`  what is dropped, and when;  `files`  the folder;  `errors`  what SQLite says, in our words
- `reader`     a journal to look at, also while a gateway writes it
"""
