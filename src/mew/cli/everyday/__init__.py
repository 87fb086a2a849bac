"""The everyday commands: what a person does in a space from a terminal, one command each.

- `place`       what all of them share: where the space is, who one is there, how a command says no
- `out`         text and JSON on the terminal, and nothing in it that participants could act on it with
- `arguments`   `key=value`, `key:=JSON`, `key=@file`, by the schema of the tool
- `talk`        send;  `tail`  tail;  `people`  participants;  `words`  capabilities in words
- `tools`       tools, call, propose;  `offers`  tools as they are shown
- `proposals`   proposals, approve, reject;  `desk`  all proposals that are known;  `decision`  one as it is shown;
                `deciding`  showing, asking, doing;  `editing`  asking at the terminal, and the editor
- `questions`   questions, answer;  `inbox`  those that wait;  `answering`  asked while something else runs
- `management`  grant, revoke, invite, kick;  `can`, `reasons`  why somebody may do something, or not
- `control`     pause, resume, status-of, forget, compact, clear, restart-of, shutdown;  `reasoning`
- `tokens`      token
- `doctor`      doctor, from `machine_checks`, `folder_checks` and `gateway_checks`
- `asked`       what a gateway tells over HTTP;  `folder`  the space.yaml that is meant;  `lasting`  15m, 2h

Exit codes are those of `mew.cli.ending`: 1 where the thing itself said no (`SaidNo`, or what the client raises), 2
where it was typed wrongly or there was no connection (`Failed`).
"""
