"""MCP between participants.

- `requests`     ask others;  `large_result`  results too large for an envelope
- `call`         one request being answered, and the port of who answers
- `results`      values to MCP content and back;  `validation`  the JSON Schemas of others, safely
- `questions`    what others ask us;  `model_tools`  the tools of others, for the APIs of language models
"""
