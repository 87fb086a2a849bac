"""The command line: a module for each command; they parse, call and print."""
