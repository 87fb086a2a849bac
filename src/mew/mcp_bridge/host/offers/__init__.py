"""What hosts may use: discovered from participants, filtered by capabilities."""
