"""The SDK: a participant of a space. It knows the protocol and proposals, not the server.

- `client`       Client, which an application uses, and `connect`;  `sync`  the same client without async
- `connection`   one lasting connection: in order, nothing lost, nothing twice
- `proposals`    propose, follow and review;  `history`  envelopes of before
- `chat`, `reasoning`, `streams`, `management`  the other parts of a client
- `mcp`          requests to others, results, questions;  `tools`  tools made from functions
- `participant`  Participant, which answers
- `errors`       what can go wrong
"""
