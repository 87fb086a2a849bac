"""PURE. An envelope as people read it: who, and in a few words what they do.

Text of others is made visible first, so that nothing in it moves, hides or rewrites anything on a terminal.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from rich.text import Text

from mew.protocol.capability import short_text
from mew.protocol.envelope import GATEWAY, Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut, literal, named, visible

from .ids import short

__all__ = ["RenderedLine", "colour_of", "line_of", "prose"]

# Of 256, those that can be told apart and read on dark and on light; red is for what fails.
_COLOURS: Final = (33, 37, 30, 64, 71, 97, 105, 108, 130, 133, 136, 139, 166, 173, 68, 179)
_DIM: Final = "dim"
_BAD: Final = "red"
_UNKNOWN_METHOD: Final = -32601
_PROSE_CHARS_MAX: Final = 4_000
_VALUE_CHARS_MAX: Final = 160
_NUMBER_CHARS_MAX: Final = 40
_NAMES_MAX: Final = 4
_PLAIN: Final = re.compile(r'[^"\\\n]+')

_Content: TypeAlias = dict[str, Any]
_Part: TypeAlias = str | Text | tuple[str, str]


class RenderedLine(NamedTuple):
    """`who` is not always who signed it: that somebody came is said by the gateway, and is about them."""

    who: str
    what: Text


def line_of(envelope: Envelope) -> RenderedLine:
    """One envelope in a line, or in a few where somebody wrote several; any envelope, be its payload what it may."""
    try:
        content = envelope.content
        who = _about(envelope, content)
        says = _KINDS.get(envelope.kind, _any)(envelope, content)
    except ProtocolError as error:
        who, says = envelope.sender, Text.assemble(named(envelope.kind), f": {visible(str(error))}")
    return RenderedLine("gateway" if who == GATEWAY else who, says)


def colour_of(who: str) -> str:
    """The same for a name each time."""
    if who == "gateway":
        return "default"
    return f"color({_COLOURS[crc32(who.encode('utf-8', 'replace')) % len(_COLOURS)]})"


def prose(text: str) -> str:
    """What somebody wrote: its lines as they are, everything in them visible, and a mark where it goes on."""
    shown = _PLAIN.sub(lambda plain: visible(plain[0], len(plain[0])), text[:_PROSE_CHARS_MAX])
    return shown if len(text) <= _PROSE_CHARS_MAX else f"{shown}… ({len(text):,} characters)"


def _about(envelope: Envelope, content: _Content) -> str:
    participant = content.get("participant")
    if envelope.kind == Kind.PRESENCE and isinstance(participant, dict):
        return _string(participant, "id") or envelope.sender
    return envelope.sender


# What others said, in parts.


def _string(content: _Content, name: str) -> str:
    value = content.get(name)
    return value if isinstance(value, str) else ""


def _dict(content: _Content, name: str) -> _Content:
    value = content.get(name)
    return value if isinstance(value, dict) else {}


def _list(content: _Content, name: str) -> list[Any]:
    value = content.get(name)
    return value if isinstance(value, list) else []


def _short(envelope_id: str) -> tuple[str, str]:
    return f"#{short(envelope_id)}", _DIM


def _causes(envelope: Envelope) -> list[_Part]:
    parts: list[_Part] = []
    for cause in envelope.correlation_id[:_NAMES_MAX]:
        parts += [" ", _short(cause)]
    return parts


def _names(names: Iterable[Any]) -> list[_Part]:
    listed = [name for name in names if isinstance(name, str)]
    parts: list[_Part] = []
    for name in listed[:_NAMES_MAX]:
        parts += [", " if parts else "", (cut(named(name), 40), colour_of(name))]
    if len(listed) > _NAMES_MAX:
        parts.append(f" and {len(listed) - _NAMES_MAX} more")
    return parts


def _to(envelope: Envelope, before: str = " to ") -> list[_Part]:
    return [before, *_names(envelope.to)] if envelope.to else []


def _why(content: _Content, name: str = "reason") -> str:
    reason = _string(content, name)
    return f": {prose(reason)}" if reason else ""


def _capabilities(written: list[Any]) -> str:
    listed = ", ".join(visible(short_text(one), 80) for one in written[:_NAMES_MAX])
    return f"{listed} and {len(written) - _NAMES_MAX} more" if len(written) > _NAMES_MAX else listed


def _asked(content: _Content) -> Text:
    """What an MCP request asks for: `write_file(path: "a.txt")`."""
    method, params = _string(content, "method"), _dict(content, "params")
    if method == "tools/call" and isinstance(params.get("name"), str):
        arguments = literal(_dict(params, "arguments"), _VALUE_CHARS_MAX)[1:].removesuffix("}")
        return Text.assemble((cut(named(params["name"]), 80), "bold"), f"({arguments})")
    return Text.assemble(
        (visible(method, 80), "bold"), f" {literal(params, _VALUE_CHARS_MAX)}" if params else ""
    )


def _result(result: Any) -> str:
    if not isinstance(result, dict):
        return literal(result, _VALUE_CHARS_MAX)
    if isinstance(result.get("tools"), list):
        tools = [one.get("name") for one in result["tools"] if isinstance(one, dict)]
        return f"{len(tools)} tools: {visible(', '.join(map(str, tools)))}" if tools else "no tools"
    blocks = [block for block in _list(result, "content") if isinstance(block, dict)]
    if not blocks:
        return literal(result, _VALUE_CHARS_MAX)
    said = (_string(one, "text") or f"[{_string(one, 'type')}]" for one in blocks[:_NAMES_MAX])
    return prose("\n".join(said))


# What each kind says.


def _any(envelope: Envelope, content: _Content) -> Text:
    shown = f" {literal(content, _VALUE_CHARS_MAX)}" if content else ""
    return Text.assemble((visible(envelope.kind, 80), "italic"), *_to(envelope), *_causes(envelope), shown)


def _chat(envelope: Envelope, content: _Content) -> Text:
    addressed = [*_to(envelope, "→ "), ": "] if envelope.to else []
    return Text.assemble(*addressed, prose(_string(content, "text")))


def _proposal(envelope: Envelope, content: _Content) -> Text:
    return Text.assemble("proposes ", _asked(content), *_to(envelope), " ", _short(envelope.id))


def _request(envelope: Envelope, content: _Content) -> Text:
    fulfils = [" for", *_causes(envelope)] if envelope.correlation_id else []
    return Text.assemble(
        "asks", *_to(envelope, " "), ": ", _asked(content), " ", _short(envelope.id), *fulfils
    )


def _response(envelope: Envelope, content: _Content) -> Text:
    error, result = content.get("error"), content.get("result")
    if isinstance(error, dict) and error.get("code") == _UNKNOWN_METHOD:
        # Hosts probe for what a participant may offer; that it does not is no failure.
        return Text.assemble(("does not offer", _DIM), *_causes(envelope))
    if isinstance(error, dict):
        return Text.assemble(("fails", _BAD), *_causes(envelope), f": {prose(_string(error, 'message'))}")
    failed = isinstance(result, dict) and result.get("isError") is True
    verb = ("fails", _BAD) if failed else ("answers", "")
    return Text.assemble(verb, *_causes(envelope), f": {_result(result)}")


def _thought(verb: str) -> "_Says":
    def says(envelope: Envelope, content: _Content) -> Text:
        return Text(f"{verb}{_why(content, 'message') or _why(content)}", style=_DIM)

    return says


def _about_causes(verb: str, style: str = "", field: str = "reason") -> "_Says":
    """What is done with something said before."""

    def says(envelope: Envelope, content: _Content) -> Text:
        return Text.assemble((verb, style), *_causes(envelope), *_to(envelope, " of "), _why(content, field))

    return says


def _with_others(verb: str, after: str = "") -> "_Says":
    """What is asked of others, or done to them."""

    def says(envelope: Envelope, content: _Content) -> Text:
        given = {name: value for name, value in content.items() if name not in ("reason", "timeout_seconds")}
        seconds = content.get("timeout_seconds")
        lasting = f" for {literal(seconds, _NUMBER_CHARS_MAX)} s" if isinstance(seconds, int | float) else ""
        more = f" {literal(given, _VALUE_CHARS_MAX)}" if given else ""
        return Text.assemble(verb, *_to(envelope, " "), after, lasting, _why(content), (more, _DIM))

    return says


def _grant(envelope: Envelope, content: _Content) -> Text:
    lasting = ""
    if isinstance(content.get("ttl_seconds"), int | float):
        lasting = f" for {literal(content['ttl_seconds'], _NUMBER_CHARS_MAX)} s"
    elif _string(content, "expires_at"):
        lasting = f" until {visible(_string(content, 'expires_at'), 40)}"
    given = _capabilities(_list(content, "capabilities"))
    return Text.assemble(
        "grants ",
        *_names([content.get("recipient")]),
        f" {given}{lasting}{_why(content)} ",
        _short(envelope.id),
    )


def _revoke(envelope: Envelope, content: _Content) -> Text:
    what: list[_Part] = [_capabilities(_list(content, "capabilities"))]
    if _string(content, "grant_id"):
        what = ["the grant ", _short(_string(content, "grant_id"))]
    return Text.assemble("takes from ", *_names([content.get("recipient")]), " ", *what, _why(content))


def _invite(envelope: Envelope, content: _Content) -> Text:
    given = _capabilities(_list(content, "initial_capabilities"))
    having = f" with {given}" if given else ""
    return Text.assemble("invites ", *_names([content.get("participant_id")]), having, _why(content))


def _kick(envelope: Envelope, content: _Content) -> Text:
    return Text.assemble(("removes ", _BAD), *_names([content.get("participant_id")]), _why(content))


def _presence(envelope: Envelope, content: _Content) -> Text:
    if content.get("event") != "join":
        return Text("leaves" if content.get("event") == "leave" else visible(_string(content, "event")), _DIM)
    held = _capabilities(_list(_dict(content, "participant"), "capabilities"))
    return Text.assemble("joins", (f", may {held}" if held else "", _DIM))


def _stream(verb: str) -> "_Says":
    def says(envelope: Envelope, content: _Content) -> Text:
        told = {
            name: value for name, value in content.items() if name not in ("stream_id", "reason", "created")
        }
        stream = visible(_string(content, "stream_id"), 80)
        more = f" {literal(told, _VALUE_CHARS_MAX)}" if told else ""
        parts = [verb, f" {stream}" if stream else "", *_to(envelope, " for "), *_causes(envelope)]
        return Text.assemble(*parts, _why(content), (more, _DIM))

    return says


def _error(envelope: Envelope, content: _Content) -> Text:
    said = _string(content, "message") or _string(content, "error")
    return Text.assemble((prose(said), _BAD), *_causes(envelope))


_Says: TypeAlias = Callable[[Envelope, _Content], Text]
_KINDS: Final[dict[str, _Says]] = {
    Kind.CHAT: _chat,
    Kind.CHAT_ACKNOWLEDGE: _about_causes("acknowledges", _DIM, "status"),
    Kind.CHAT_CANCEL: _about_causes("cancels"),
    Kind.MCP_PROPOSAL: _proposal,
    Kind.MCP_REQUEST: _request,
    Kind.MCP_RESPONSE: _response,
    Kind.MCP_REJECT: _about_causes("rejects", _BAD),
    Kind.MCP_WITHDRAW: _about_causes("withdraws"),
    Kind.REASONING_START: _thought("begins to think"),
    Kind.REASONING_THOUGHT: _thought("thinks"),
    Kind.REASONING_CONCLUSION: _thought("concludes"),
    Kind.REASONING_CANCEL: _thought("stops thinking"),
    Kind.GRANT: _grant,
    Kind.REVOKE: _revoke,
    Kind.GRANT_ACK: _about_causes("takes the grant", _DIM, "status"),
    Kind.INVITE: _invite,
    Kind.KICK: _kick,
    Kind.PAUSE: _with_others("pauses"),
    Kind.RESUME: _with_others("resumes"),
    Kind.STATUS: _with_others("is"),
    Kind.REQUEST_STATUS: _with_others("asks", " for a status"),
    Kind.FORGET: _with_others("asks", " to forget"),
    Kind.COMPACT: _with_others("asks", " to compact"),
    Kind.COMPACT_DONE: _with_others("has compacted"),
    Kind.CLEAR: _with_others("asks", " to clear its context"),
    Kind.RESTART: _with_others("asks", " to restart"),
    Kind.SHUTDOWN: _with_others("shuts down"),
    Kind.STREAM_REQUEST: _stream("asks for a stream"),
    Kind.STREAM_OPEN: _stream("opens"),
    Kind.STREAM_CLOSE: _stream("closes"),
    Kind.STREAM_ACK: _stream("has received of"),
    Kind.STREAM_GRANT_WRITE: _stream("lets write to"),
    Kind.STREAM_REVOKE_WRITE: _stream("lets no longer write to"),
    Kind.STREAM_TRANSFER: _stream("hands over"),
    Kind.STREAM_WRITE_GRANTED: _stream("has let write to"),
    Kind.STREAM_WRITE_REVOKED: _stream("has kept from writing to"),
    Kind.STREAM_TRANSFERRED: _stream("has handed over"),
    Kind.PRESENCE: _presence,
    Kind.ERROR: _error,
}
