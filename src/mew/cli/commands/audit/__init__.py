"""`mew audit`: query a journal, and prove what is in it.

- `queries`  list, chain, grants, violations, stats;  `facts`, `chain`, `grants`, `statistics`  print the answers
- `proof`    verify, export, key;  `verification`  prints the result
"""
