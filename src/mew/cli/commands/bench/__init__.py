"""`mew bench`: measure a gateway from outside."""
