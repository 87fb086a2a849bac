"""`mew conform`: check a gateway or a participant against the specification."""
