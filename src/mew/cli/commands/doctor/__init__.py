"""`mew doctor`: check this machine, the space.yaml and the gateway."""
