"""`mew audit`: query a journal and prove what is in it."""
