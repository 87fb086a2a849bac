"""Chat (§3.4) and reasoning (§3.5): `chat`, `reasoning`, and a view of what is going on: `chats`, `reasonings`."""
