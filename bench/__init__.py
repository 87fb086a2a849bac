"""Benchmarks: what a delivery costs, as a ratio between servers measured in the same run.

__main__     the command: which cells, how many rounds, in which order
workloads    what is asked: spaces, members, senders, bytes, window
candidates   who is asked: our gateway, others, and the floor in Python and in C
dialects     how the load speaks to each
cells        one candidate under one workload: its server, its load, their turns
server       starts a candidate on its own core and reads its CPU time
load         the load, a process on the other core; engines, engine.c and members are its hot part
report       medians, ratios, tables, evidence;   targets   what is to be reached
figures      what is no delivery: memory, storms, joins;   scaling   how costs grow
plots        pictures of a run;   guard   what CI holds
sdk   mcp    comparisons of their own
"""
