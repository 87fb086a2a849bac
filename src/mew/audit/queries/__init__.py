"""Questions about the audit record: search, correlation chains, proposals, grants and statistics."""
