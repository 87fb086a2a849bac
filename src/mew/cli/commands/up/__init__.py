"""`mew up`, `status`, `logs`, `restart` and `down`: run everything that a space.yaml names."""
