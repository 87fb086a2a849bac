#!/bin/sh
# An agent that may not act proposes, and somebody who may approves: propose_and_approve.sh URL TOKENS_DIRECTORY
set -eu
url=$1
tokens=$2

send() { # send PARTICIPANT ENVELOPE; the token goes by a pipe, where no list of processes shows it
    printf 'Authorization: Bearer %s' "$(cat "$tokens/$1.token")" |
        curl -s "$url/participants/$1/messages" -H @- -d "$2"
    echo
}

call='{"method": "tools/call", "params": {"name": "write_file", "arguments": {"path": "notes.md", "text": "hi"}}}'

echo "bot calls write_file:"
send bot "{\"kind\": \"mcp/request\", \"to\": [\"files\"], \"payload\": $call}"

echo "bot proposes it instead:"
send bot "{\"kind\": \"mcp/proposal\", \"id\": \"proposal-$$\", \"to\": [\"files\"], \"payload\": $call}"

echo "ann approves: she makes the call, and 'correlation_id' says why:"
send ann "{\"kind\": \"mcp/request\", \"id\": \"call-$$\", \"to\": [\"files\"], \"correlation_id\": [\"proposal-$$\"], \"payload\": $call}"

echo "files answers ann, and bot sees it, because everyone does:"
send files "{\"kind\": \"mcp/response\", \"to\": [\"ann\"], \"correlation_id\": [\"call-$$\"],
    \"payload\": {\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"written\"}]}}}"
