"""Calls of hosts: requested or proposed, waited for, and their results."""
