"""Benchmarks: what a delivery costs, as a ratio between servers measured in the same run.

__main__     the command: which cells, how many rounds, in which order
workloads    what is asked: members, senders, window
candidates   who is asked: Node ws, the uvloop floor, our gateway
server       starts one of them on its own core and reads its CPU time
load         the load, a process on the other core; prints one JSON line
report       medians, ratios, the table, the verdicts
"""
