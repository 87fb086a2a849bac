"""The policy of a wrapped server: which of its tools are hidden, denied, asked about or allowed, and how often.

- `permits`      whether a call needs approval, before its arguments are known
- `policy`       the rules, what they make of a call, and the capabilities that follow from them
- `policy_file`  the file, and the rules in force as it changes
- `scan`         a first policy, from what the tools of a server say of themselves
"""
