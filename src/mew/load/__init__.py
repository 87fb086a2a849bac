"""Load generator behind `mew bench`: it proves that every envelope arrived, and says when it was the bottleneck itself.

It is part of the wheel because users measure their own gateway with `mew bench`; `bench/` adds comparisons with others.
It knows the protocol and the wire, nothing of the gateway.

- `frames`       PURE. frames and envelopes made and masked beforehand; a parser for what comes
- `connections`  addresses, credentials, errors; connections until the welcome, and those that count, read or send
- `measurement`  wall time, CPU of both sides, memory; who was the bottleneck
- `traffic`      envelopes in flight among groups of connections, and the proof that each got exactly what was due
- `workloads`, `exchanges`, `churn`  a struct for each workload that says what to do, and a `run_…` that does it
- `invitations`  participants for the time of a run, invited and removed
"""
