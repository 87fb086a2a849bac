"""`mew replay`: play a recorded space again."""
