"""PURE. The one reducer of proposals (§3.2, §3.3, design §5): envelopes in, records out.

Gateway API, SDK, command line, bridge and audit use it; the page's twin in TypeScript runs the same vectors
(`tests/proposals/vectors.json`).

- `book`          all proposals of a space, fed with its envelopes in order
- `record`        one proposal: its status, and the rules by which it changes
- `parsing`       what an envelope says of a proposal;  `preview`  a proposal in a few lines of text
- `catalogue`     which tools there are, learned by watching
- `digest`, `differences`   whether what ran is what was proposed;  `bounded`  keeps memory bounded and fair
- `written_rule`  rules about calls, written by hand
"""
