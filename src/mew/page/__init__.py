"""The page as it was built from `web/`, and how it is served (decision 0012)."""
