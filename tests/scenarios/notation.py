"""How scenarios are written, what their steps do, and how decisions read.

A file holds scenarios; each starts with a title, `# A sentence. (section)`. Blank lines part it into blocks of steps;
below the `----` of a block stands what the space decided, in order. A block without `----` is setup, `-- …` a remark.

    participant WHO CAPABILITY...           configured from the start, not connected; `join WHO CAPABILITY...` too
    space NAME=VALUE...                     other settings from the start: delivery, announce_violations, baseline, ...
    join WHO [as=CONNECTION] [resumed=…]    its connection is called like the participant unless `as` says otherwise
    leave CONNECTION
    send WHO KIND [id=…] [to=a,b] [re=ID,ID] [context=…] [http | via=CONNECTION] [lenient] [FIELD=VALUE... | {JSON}]
    frame WHO STREAM                        a stream frame
    wait 60s                                time passes, and the space is told;  `later 60s`: it is not told
    configure WHO CAPABILITY...             the operator changes the rules;  also `without WHO`, and NAME=VALUE...
    identify WHO CAPABILITY...              an authenticator vouches for somebody;  `identify WHO -`: and says no more
    violated WHO KIND ID CODE               something was refused before the log
    restart                                 the space goes on from its snapshot
    holds WHO, token INVITE_ID, grants      asks; changes nothing

An envelope without `id` is called `e` and the number of its entry in the log; the gateway's are `gw-t-ENTRY.N`.
"""

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from tests.space.table import EPOCH, START, Table, capabilities

from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Disconnect,
    Identified,
    IssueInvitation,
    RefusalDetails,
    Refuse,
    Reply,
    Rules,
    Sent,
    Space,
    Violated,
    WakeAt,
)
from mew.space.state import SpaceState

__all__ = ["Play"]

_TOKEN: Final = re.compile(r"""(?:[^\s"\[{]|"(?:[^"\\]|\\.)*"|\[.*?\](?=\s|$)|\{.*?\}(?=\s|$))+""")
_PAIR: Final = re.compile(r"([a-z_]+)=(.*)", re.DOTALL)


class Play:
    """One scenario on one table."""

    def __init__(self, steps: Iterable[str]) -> None:
        profiles: dict[ParticipantId, Any] = {}
        settings: dict[str, Any] = {}
        for verb, *words in map(_words, steps):
            if verb == "participant" or (verb == "join" and any(not _PAIR.fullmatch(w) for w in words[1:])):
                profiles[ParticipantId(words[0])] = _capabilities(words[1:])
            elif verb == "space":
                settings |= _settings(words)
        self.table = Table(Rules(id="desk", profiles=profiles, **settings))

    def step(self, line: str) -> list[str]:
        """Do what the line says; say what came of it."""
        verb, *words = _words(line)
        do: Callable[[list[str]], list[str]] = getattr(self, f"_do_{verb}")
        return do(words)

    def _do_participant(self, words: list[str]) -> list[str]:
        return []

    _do_space = _do_participant

    def _do_join(self, words: list[str]) -> list[str]:
        named = _named(words[1:], "as", "resumed")
        resumed = None if "resumed" not in named else named["resumed"] == "true"
        return _told(self.table.join(words[0], named.get("as"), resumed=resumed))

    def _do_leave(self, words: list[str]) -> list[str]:
        return _told(self.table.leave(words[0]))

    def _do_send(self, words: list[str]) -> list[str]:
        who, kind, *rest = words
        named = _named(rest, "id", "to", "re", "context", "via")
        fields = {name: named[name] for name in ("id", "context") if name in named}
        lists = {name: named[word].split(",") for word, name in _LISTS.items() if word in named}
        connection = None if "http" in rest else named.get("via", who)
        before = len(self.table.entries)
        decisions = self.table.send(
            who, kind, _payload(rest), connection=connection, lenient="lenient" in rest, **fields, **lists
        )
        event = self.table.entries[before].event
        assert isinstance(event, Sent), "what `send` applies"
        delivered = [d.envelopes for d in decisions if isinstance(d, Deliver)]
        own = [one for one in delivered if one.senders[0] != GATEWAY]
        assert own in ([], [event.envelopes]), "what came in is what goes out, once"
        return _told(decisions)

    def _do_frame(self, words: list[str]) -> list[str]:
        who, stream_id = words
        route = self.table.space.route(self.table.now, ParticipantId(who), stream_id)
        if isinstance(route, RefusalDetails):
            return [f"{who} refused a frame: {_why(route)}"]
        to = f"all but {who}" if route.targets is None else ", ".join(route.targets)
        return [f"{to} <- a frame of {who}"]

    def _do_wait(self, words: list[str]) -> list[str]:
        return _told(self.table.wait(_seconds(words[0])))

    def _do_later(self, words: list[str]) -> list[str]:
        self.table.now += timedelta(seconds=_seconds(words[0]))
        return []

    def _do_configure(self, words: list[str]) -> list[str]:
        rules = self.table.rules
        profiles = dict(rules.profiles)
        settings: dict[str, Any] = {}
        if words[0] == "without":
            del profiles[ParticipantId(words[1])]
        elif _PAIR.fullmatch(words[0]):
            settings = _settings(words)
        else:
            profiles[ParticipantId(words[0])] = _capabilities(words[1:])
        changed = msgspec.structs.replace(rules, profiles=profiles, **settings)
        return _told(self.table.apply(Configured(changed, EPOCH)))

    def _do_identify(self, words: list[str]) -> list[str]:
        said = None if words[1:] == ["-"] else _capabilities(words[1:])
        return _told(self.table.apply(Identified(ParticipantId(words[0]), said)))

    def _do_violated(self, words: list[str]) -> list[str]:
        who, kind, envelope_id, code = words
        event = Violated(ParticipantId(who), EnvelopeId(envelope_id), kind, Refusal(code))
        return _told(self.table.apply(event))

    def _do_restart(self, words: list[str]) -> list[str]:
        self.table.space = Space(SpaceState.restore(self.table.space.state.snapshot()))
        return []

    def _do_holds(self, words: list[str]) -> list[str]:
        held = [capability.source for capability in self.table.space.held(ParticipantId(words[0]))]
        return [f"{words[0]} holds {_listed(held)}"]

    def _do_token(self, words: list[str]) -> list[str]:
        digest = f"hash-of-{words[0]}"
        who = self.table.space.invited(digest)
        if who is not None:
            return [f"the token of {words[0]} is that of {who}"]
        return [
            f"the token of {words[0]} is {'dead' if self.table.space.is_barred('', digest) else 'unknown'}"
        ]

    def _do_grants(self, words: list[str]) -> list[str]:
        return [
            f"{grant.id}: {grant.by} -> {grant.recipient} {_listed(c.source for c in grant.capabilities)}"
            + (f" via {', '.join(grant.via)}" if grant.via else "")
            + (f" until {_clock(grant.expires_at)}" if grant.expires_at else "")
            for grant in self.table.space.state.grants.values()
        ] or ["no grants"]


_LISTS: Final = {"to": "to", "re": "correlation_id"}
_FLAGS: Final = ("http", "lenient")
_HEADER: Final = ("id", "to", "re", "context", "via")


def _words(line: str) -> list[str]:
    return _TOKEN.findall(line)


def _named(words: list[str], *names: str) -> dict[str, str]:
    pairs = [match.groups() for word in words if (match := _PAIR.fullmatch(word))]
    return {name: value for name, value in pairs if name in names}


def _payload(words: list[str]) -> Any:
    """The fields given one by one, or the JSON as it is written."""
    fields: dict[str, Any] = {}
    for word in words:
        match = _PAIR.fullmatch(word)
        if word.startswith("{"):
            return word.encode()
        if match is None:
            assert word in _FLAGS, f"what is {word!r}?"
        elif match[1] not in _HEADER:
            fields[match[1]] = _value(match[2])
    return fields or None


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        if written.startswith("["):
            return [item.strip() for item in written[1:-1].split(",")]
        return written


def _settings(words: list[str]) -> dict[str, Any]:
    found = {match[1]: _value(match[2]) for word in words if (match := _PAIR.fullmatch(word))}
    return {name: capabilities(value) if isinstance(value, list) else value for name, value in found.items()}


def _capabilities(words: list[str]) -> tuple[Any, ...]:
    return capabilities(_value(word) for word in words if not _PAIR.fullmatch(word))


def _seconds(written: str) -> float:
    return float(written[:-1]) * {"s": 1, "m": 60, "h": 3600}[written[-1]]


def _told(decisions: list[Decision]) -> list[str]:
    return list(map(_line, decisions))


def _line(decision: Decision) -> str:
    match decision:
        case Deliver(envelopes, only):
            (envelope,) = envelopes
            to = None if only is None else only[0]
            return f"{'all' if to is None else ', '.join(to)} <- {_shown(envelope)}"
        case Reply(who, envelope, connection):
            assert envelope.to == (who,), "private, and says so"
            return f"{_at(who, connection, 'everywhere')} <- {_shown(envelope)}"
        case Refuse(who, envelope_id, _, refused, connection):
            return f"{_at(who, connection, 'http')} refused {envelope_id}: {_why(refused)}"
        case Disconnect(connections, code, reason):
            return f"close {', '.join(connections)}: {int(code)} {reason}"
        case IssueInvitation(envelope, participant, email, connection):
            mail = "" if email is None else f", and mail it to {email}"
            return f"hand {_at(envelope.sender, connection, 'http')} the token of {participant}{mail}"
        case WakeAt(at):
            return f"wake at {_clock(at)}"


def _at(who: str, connection: ConnectionId | None, otherwise: str) -> str:
    """Where somebody is told; nothing more to say of the connection that is called like its participant."""
    return who if connection == who else f"{who} ({connection or otherwise})"


def _why(refused: RefusalDetails) -> str:
    again = "" if refused.retry_after_s is None else f", again in {refused.retry_after_s:.0f} s"
    return f"{refused.refusal}{again}"


def _shown(envelope: Envelope) -> str:
    """A participant's by id and kind: it is what it was. The gateway's with all it says."""
    if envelope.sender != GATEWAY:
        return f"{envelope.id} {envelope.kind}"
    said = msgspec.json.decode(bytes(envelope.payload))
    head = [f"to={','.join(envelope.to)}"] if envelope.to and envelope.kind != Kind.WELCOME else []
    head += [f"re={','.join(envelope.correlation_id)}"] if envelope.correlation_id else []
    telling = {Kind.WELCOME: _welcome, Kind.PRESENCE: _presence}.get(envelope.kind, _fields)
    return " ".join([envelope.id, envelope.kind, *head, telling(said)])


def _welcome(said: dict[str, Any]) -> str:
    parts = [f"you {_member(said['you'])}"]
    if said["participants"]:
        parts.append(f"with {', '.join(map(_member, said['participants']))}")
    parts += [f"stream {_fields(stream)}" for stream in said["active_streams"]]
    if "resumed" in said:
        parts.append(f"resumed={str(said['resumed']).lower()}")
    return "; ".join(parts)


def _presence(said: dict[str, Any]) -> str:
    who = said["participant"]
    return f"{said['event']} {_member(who) if 'capabilities' in who else who['id']}"


def _member(member: dict[str, Any]) -> str:
    return f"{member['id']} {_listed(member['capabilities'])}"


def _listed(sources: Iterable[dict[str, Any]]) -> str:
    return f"[{', '.join(map(_capability, sources))}]"


def _capability(source: dict[str, Any]) -> str:
    kind = source["kind"] if isinstance(source["kind"], str) else json.dumps(source["kind"])
    rest = "".join(f" {name}={json.dumps(source[name])}" for name in ("to", "payload") if name in source)
    excepted = f" except {_listed(source['except'])}" if "except" in source else ""
    return f"{kind}{rest}{excepted}"


def _fields(said: dict[str, Any]) -> str:
    """All but the sentence in a `message`, and the `encoding` that a stream has unless it says otherwise."""
    told = {name: value for name, value in said.items() if name != "message" and value != "binary"}
    return " ".join(f"{name}={_field(name, value)}" for name, value in told.items())


def _field(name: str, value: Any) -> str:
    if name == "created":
        return _clock(datetime.fromisoformat(value))
    return value if isinstance(value, str) and " " not in value else json.dumps(value)


def _clock(at: datetime) -> str:
    days = (at - START).days
    return f"{at:%H:%M:%S}" + (f" +{days} days" if days else "")
