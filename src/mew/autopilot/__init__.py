"""The approval layer that learns from reviewers which proposals need no person (§2.1, §4.1, §9.4).

- `settings`      what `autopilot:` in space.yaml, or a file, says
- `view`          PURE. JSON arguments as discrete heads and ordered softs
- `rule`          PURE. A pattern over views: what it matches, why not, and how it reads
- `evidence`      PURE. The e-value of a rule and its bound in words
- `learner`       PURE. Groups, candidates and their states: decisions in, rules out
- `policy`        PURE. What to do about one proposal
- `state`         PURE. The same from the envelopes of a space
- `simulation`    PURE. Hidden policies to measure it with;  `benchmark`  the table of `mew autopilot bench`
- `participant`   `mew autopilot`: the shell
"""
