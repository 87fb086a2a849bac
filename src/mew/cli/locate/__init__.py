"""Find what a command works on: the gateway and the token, the space.yaml, the journal, an id."""
