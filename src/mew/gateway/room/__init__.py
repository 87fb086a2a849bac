"""One space on this node: decides, journals and delivers what it received, once per pass of the event loop.

- `room`        the turn: `Room.turn` decides and journals, `Room.deliver` delivers
- `turns`       one pass of the event loop for all rooms, and one commit
- `admission`   the checks that need no space;  `rate_limit`  how fast somebody may send
- `outbox`      the bounded send queue of each connection
- `streams`     stream frames, which are in no journal
- `timer`       the next moment at which something is due
- `replies`     what the gateway tells one participant alone
- `playback`    a recorded space, played again
- `ports`       what a room needs of the world and of a connection
"""
