"""Participant: somebody who answers.

- `participant`  what an author writes;  `behaviour`  what was said there;  `program`  as a whole program
- `serving`      from its first envelope to its last;  `answering`, `work`  requests, each answered once
- `dispatch`     results too large for an envelope, over streams
- `control`, `pause`, `telemetry`, `compaction`, `retention`, `voice`  §3.9 without a line of the author's
"""
