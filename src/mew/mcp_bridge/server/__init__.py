"""Into the space: an MCP server becomes a participant.

- `settings`             what to start or to call, whom to ask, and the limits
- `bridge`               `run_bridge`: puts the parts together
- `process`, `endpoint`  how a server is reached: a process of ours, or Streamable HTTP;  `wire`  either of them
- `confinement`          starts a process that cannot see our state
- `handshake`, `link`    one life of a server, raw JSON in and out;  `keeping`  all its lives, one after another
- `translating`          what is asked in the space;  `errands`  what is under way;  `failures`  why nothing came of it
- `hearing`, `relaying`  what the server tells;  `interests`, `subscriptions`, `listening`  who wants to hear it
- `asking`               what the server asks;  `pins`  its tools as first seen
"""
