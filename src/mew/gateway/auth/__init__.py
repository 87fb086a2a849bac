"""Authentication: bearer tokens, JWTs, sign-in links and sessions, and the limits before a client has authenticated."""
