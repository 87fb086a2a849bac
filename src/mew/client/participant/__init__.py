"""Participant: a program that answers.

- `participant`  what an author writes;  `runtime`  runs it
- `responder`    answers requests, each once;  `worker_pool`  bounded concurrent work;  `outbound`  what it sends itself
- `control`, `status`, `memory`  §3.9 without a line of the author's
"""
