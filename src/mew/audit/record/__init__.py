"""What the audit record says: facts extracted from journal entries, and the SQLite index that holds them."""
