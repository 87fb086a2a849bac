"""`space.yaml`: the YAML tree with line numbers, its sections, and the frozen settings they become."""
