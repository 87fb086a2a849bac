"""Benchmarks: what a delivery costs, as a ratio between servers measured in the same run.

__main__     the command: which cells, how many rounds, in which order
workloads    what is asked: spaces, members, senders, bytes, window
candidates   who is asked: our gateway, others, and the floor in Python and in C
dialects     how the load speaks to each
cells        one candidate under one workload: its server, its load, their turns
server       starts a candidate on its own core and reads its CPU time
load         the load, a process on the other core; engines, engine.c and members are its hot part
compiled     the files in C
report       medians, ratios, tables, evidence;   targets   what is to be reached
alone        our gateway alone, under mew.load: figures   single ones,   scaling   how costs grow
recorded     a run, read again;   growth   the lines through its points
plots        pictures of a run, of chart, rows and svg
path         an envelope's way within one process, over pipes;   guard   what CI holds of it
sdk   mcp    comparisons of their own
"""
