"""One module for each command, or for each noun, named like it; loaded when the command runs."""
