"""A load for gateways that is never the bottleneck unnoticed, and what it measures. Knows the protocol and the wire.

- `frames`, `templates`  what is sent, made and masked beforehand; what comes, taken apart (PURE)
- `place`                where a gateway is, and the requests that open its doors (PURE)
- `opening`, `lines`     connections: until the welcome, and after it: those who count bytes, those who read and talk
- `traffic`              envelopes in flight among groups of them, and the proof that each got exactly what was due
- `machine`, `measuring` what it took: time, CPU of both sides, memory; who was the bottleneck
- `fan_out`, `spaces`, `addressed`, `checks`, `proposals`, `streams`, `storm`, `idle`, `joins`, `injection`
                         one workload each: a struct that says what to do, and a `run` that does it
- `seating`              fills a space for them
- `hosting`              participants for the time of a run, invited and removed
- `workloads`            all of them;  `python -m mew.load` runs one, told by JSON on standard input
"""
