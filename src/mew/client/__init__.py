"""The SDK: somebody in a space. Knows the protocol, not the server.

- `wire`         one lasting connection: in order, nothing lost, nothing twice
- `member`       being in a space: who I am, who is here, envelopes in and out
- `caller`       using what others offer: by a request, or by a proposal
- `client`       Client: what an application uses;  `connecting`  how it comes by one
- `mcp`          tools from functions, and requests to others
- `proposals`    propose, review, and the book of all proposals
- `talk`         chat and reasoning;  `streams`  data and files
- `management`   grant, revoke, invite, kick;  `oversight`  pause, resume and ask others
- `serving`      Participant: somebody who answers;  `blocking`  the same client without async
- `errors`       what can go wrong;  `bounded`  what keeps memories small
"""
