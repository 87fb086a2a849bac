"""Gateways that match patterns otherwise."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, Final

from mew.protocol.capability.capability_set import CapabilitySet
from mew.protocol.capability.clause import Clause
from mew.protocol.capability.glob import Glob
from mew.protocol.capability.pattern import Anything, Exact, Fields, Regex, Scalar

from .breaks import Break, Mutant, of, replaced, wrapping
from .deciding import allowing, refusing

__all__ = ["MUTANTS"]


Fits = Callable[[Any, Any], bool]

EXACT: Final = "patterns.an_exact_kind_allows_nothing_else"
BELOW: Final = "patterns.a_wildcard_allows_what_it_stands_for"
OTHERS: Final = "patterns.a_wildcard_allows_nothing_of_other_kinds"
ANYWHERE: Final = "patterns.a_wildcard_may_stand_anywhere"
FIELD: Final = "patterns.a_field_of_the_payload_must_fit"
VALUES: Final = "patterns.a_value_that_is_no_text_must_be_the_same"
ANY_KIND: Final = "patterns.a_payload_pattern_counts_under_any_kind"
EVERY: Final = "patterns.every_field_of_one_capability_must_fit"
SIGN: Final = "patterns.a_sign_stands_for_itself"
REQUEST: Final = "patterns.the_examples_for_a_request_hold"
CHAT: Final = "patterns.the_examples_for_a_chat_hold"
ONLY_CHAT: Final = "patterns.a_chat_passes_under_nothing_else"
REGEX: Final = "patterns.a_regular_expression_decides"
PATH: Final = "patterns.a_path_finds_what_must_fit"


def exact(fits: Fits) -> Break:
    """What a plain text fits."""
    return replaced(Exact, "fits", lambda self, value: isinstance(value, str) and fits(self.text, value))


def glob(fits: Fits) -> Break:
    """What a text with wildcards fits."""
    return replaced(Glob, "fits", lambda self, value: isinstance(value, str) and fits(self.text, value))


def fields(fits: Callable[[Fields, Any], bool]) -> Break:
    return replaced(Fields, "fits", lambda self, value: isinstance(value, dict) and fits(self, value))


def regex(fits: Fits) -> Break:
    return replaced(
        Regex, "fits", lambda self, value: isinstance(value, str) and fits(self.text[1:-1], value)
    )


def anywhere(document: Any, name: str) -> list[Any]:
    """The values of a field, however deep it is."""
    below = (
        document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    )
    found = [document[name]] if isinstance(document, dict) and name in document else []
    return found + [value for one in below for value in anywhere(one, name)]


def mixed(self: CapabilitySet, kind: str, to: Any, payload: Any, *_: Any) -> bool:
    """The kind of one capability and the payload of another will do."""
    clauses = [one.scope.clause for one in self.capabilities]
    return any(one.kind.fits(kind) for one in clauses) and any(one.fits_payload(payload()) for one in clauses)


def joined(self: Glob, value: Any, right: Any = Glob.fits) -> bool:
    """As a language does that makes texts of arrays."""
    return bool(right(self, ",".join(value) if isinstance(value, list) else value))


def path(fits: Callable[[list[Any], Any], bool]) -> Break:
    return replaced(Fields, "_path_fits", lambda self, path, pattern, value: fits(path.nodes(value), pattern))


MUTANTS: Final = (
    Mutant(
        "pattern.exact", EXACT, exact(lambda text, value: value.startswith(text)), "send chat/acknowledge"
    ),
    Mutant(
        "pattern.exact", EXACT, exact(lambda text, value: value.lower() == text.lower()), "may not send Chat"
    ),
    Mutant("pattern.exact", EXACT, exact(lambda text, value: value.strip() == text), "may not send chat  {"),
    Mutant("pattern.exact", EXACT, exact(lambda text, value: text.startswith(value)), "may not send cha {"),
    Mutant("pattern.exact", EXACT, exact(lambda text, value: text in value), "may not send"),
    Mutant("pattern.exact", EXACT, exact(lambda text, value: fnmatchcase(text, value)), "may not send * {"),
    Mutant("pattern.exact", SIGN, exact(lambda text, value: bool(re.fullmatch(text, value))), "it did not"),
    Mutant(
        "pattern.nested", SIGN, exact(lambda text, value: value[:2] == text[:2]), "may not send mcp/request"
    ),
    Mutant(
        "pattern.wildcard", BELOW, glob(lambda text, value: value.startswith(text[:3])), "may not send mcp {"
    ),
    Mutant(
        "pattern.wildcard", BELOW, glob(lambda text, value: text[:-1] in value), "may not send xmcp/request"
    ),
    Mutant(
        "pattern.wildcard", BELOW, glob(lambda text, value: fnmatchcase(value.lower(), text)), "MCP/request"
    ),
    Mutant("pattern.wildcard", BELOW, glob(lambda text, value: f"{value}/*" == text), "which peer may send"),
    Mutant("pattern.wildcard", BELOW, refusing(of("mcp/withdraw")), "the gateway refused it"),
    Mutant("pattern.wildcard", OTHERS, allowing(of("chat", sender="guest")), "may not send chat"),
    Mutant("pattern.wildcard", OTHERS, glob(lambda text, value: "/" in value), "may not send chat/cancel"),
    Mutant(
        "pattern.wildcard",
        ANYWHERE,
        glob(lambda text, value: value.startswith(text.split("*")[0])),
        "may not send",
    ),
    Mutant(
        "pattern.wildcard",
        ANYWHERE,
        glob(lambda text, value: bool(re.search(text.replace("*", ".*"), value))),
        "not",
    ),
    Mutant(
        "pattern.wildcard",
        ANYWHERE,
        glob(lambda text, value: text.count("*") == 1 and fnmatchcase(value, text)),
        "a1b2c",
    ),
    Mutant(
        "pattern.nested",
        FIELD,
        fields(
            lambda self, value: all(name not in value or one.fits(value[name]) for name, one in self.fields)
        ),
        "may not send mcp/request",
    ),
    Mutant(
        "pattern.nested",
        FIELD,
        fields(lambda self, value: any(name in value and one.fits(value[name]) for name, one in self.fields)),
        "write_file",
    ),
    Mutant(
        "pattern.nested",
        FIELD,
        fields(
            lambda self, value: all(any(map(one.fits, anywhere(value, name))) for name, one in self.fields)
        ),
        "may not send mcp/request",
    ),
    Mutant("pattern.values", VALUES, replaced(Scalar, "fits", lambda self, value: True), "may not send"),
    Mutant(
        "pattern.values",
        VALUES,
        replaced(Scalar, "fits", lambda self, value: value == self.value),
        '"arguments": {"dry_run": 1}',
    ),
    Mutant("pattern.values", VALUES, replaced(Scalar, "fits", lambda self, value: False), "may send"),
    Mutant(
        "pattern.payload-of-any-kind",
        ANY_KIND,
        wrapping(
            Clause,
            "fits_payload",
            lambda right, self, document: isinstance(self.kind, Anything) or right(self, document),
        ),
        "may not send",
    ),
    Mutant("pattern.nested", FIELD, replaced(Glob, "fits", joined), '["read_file", "write_file"]'),
    Mutant(
        "pattern.nested", FIELD, fields(lambda self, value: value.keys() == {*dict(self.fields)}), "may send"
    ),
    Mutant(
        "pattern.nested",
        FIELD,
        replaced(Clause, "fits_payload", lambda self, document: not document),
        "may send",
    ),
    Mutant(
        "pattern.nested",
        EVERY,
        fields(
            lambda self, value: all(
                isinstance(one, Fields) or one.fits(value.get(name)) for name, one in self.fields
            )
        ),
        "may not send mcp/request",
    ),
    Mutant("pattern.nested", EVERY, replaced(CapabilitySet, "fits", mixed), "may not send"),
    Mutant("pattern.regex", REGEX, regex(lambda text, value: value == text), "may send"),
    Mutant(
        "pattern.regex", REGEX, regex(lambda text, value: bool(re.search(text[1:-1], value))), "may not send"
    ),
    Mutant(
        "pattern.regex", REGEX, regex(lambda text, value: bool(re.match(text[:-1], value))), "may not send"
    ),
    Mutant("pattern.regex", REGEX, regex(lambda text, value: bool(re.match(text, value, re.I))), "read_FILE"),
    Mutant(
        "pattern.jsonpath", PATH, path(lambda nodes, pattern: all(map(pattern.fits, nodes))), "may not send"
    ),
    Mutant("pattern.jsonpath", PATH, path(lambda nodes, pattern: bool(nodes)), '"path": "etc"'),
    Mutant("pattern.jsonpath", PATH, path(lambda nodes, pattern: pattern.fits(nodes)), "may send"),
    Mutant(
        "pattern.examples-request", REQUEST, glob(lambda text, value: value.startswith("mcp/")), "may send"
    ),
    Mutant("pattern.examples-request", REQUEST, glob(lambda text, value: text[:4] == value[:4]), '"tools"'),
    Mutant(
        "pattern.examples-request", REQUEST, refusing(of("mcp/request", sender="peer")), "which peer may send"
    ),
    Mutant(
        "pattern.examples-chat",
        CHAT,
        replaced(Anything, "fits", lambda self, value: "/" not in value),
        "may send",
    ),
    Mutant(
        "pattern.examples-chat",
        CHAT,
        replaced(Anything, "fits", lambda self, value: value == "*"),
        "may send",
    ),
    Mutant("pattern.examples-chat", ONLY_CHAT, allowing(of("chat")), "may not send chat"),
    Mutant("pattern.examples-chat", ONLY_CHAT, glob(lambda text, value: value == text[:-2]), "may send"),
)
