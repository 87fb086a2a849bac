"""The approval layer that learns from reviewers which proposals need no person (§2.1, §4.1, §9.4).

- `settings`      what `autopilot:` in space.yaml, or a file, says
- `view`          PURE. JSON arguments as discrete heads and ordered softs
- `rule`          PURE. A pattern over views: what it matches, why not, and how it reads
- `evidence`      PURE. The e-value of a rule and its bound in words
- `precedents`    PURE. Past decisions of one group of calls, and the guard
- `hull`          PURE. Patterns that past approvals suggest
- `learner`       PURE. Rules that grow with approvals, and their states: decisions in, rules out
- `policy`        PURE. What to do about one proposal
- `summary`       PURE. What was decided alone, audited and objected to, by day
- `state`         PURE. The same from the envelopes of a space
- `comparison`    Which past decisions other settings would change, and for whom
- `bench`         hidden policies to measure it with, and the table of `mew autopilot bench`
- `participant`   `mew autopilot`: the shell
"""
