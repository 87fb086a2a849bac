"""PURE. How the gateway under test writes the patterns that the document names without a notation (§4.2)."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from .verdicts import NotOffered

__all__ = ["Notation"]


class Notation(Struct, frozen=True, forbid_unknown_fields=True):
    """Templates, ours by default; one that is empty says that the gateway has no such patterns.

    `regex` is a pattern in which `{expression}` stands for the expression. `jsonpath` is a capability with `{kind}`,
    `{pattern}` for what the path must find, and `{path}`, like `$.params.name`, or `{steps}`, the same without `$`.
    """

    regex: Any = "/{expression}/"
    jsonpath: Any = field(default_factory=lambda: {"kind": "{kind}", "payload": {"{path}": "{pattern}"}})

    def expression(self, expression: str) -> Any:
        """A regular expression as a pattern. It has `^` and `$`, so that it does not matter whether it is searched for.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.regex:
            raise NotOffered("the gateway has no notation for regular expressions (notation.regex)")
        return _filled(self.regex, {"expression": f"^({expression})$"})

    def looking(self, kind: str, path: str, pattern: str) -> Any:
        """The capability to send this kind where a JSONPath, from the payload on, finds what fits.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.jsonpath:
            raise NotOffered("the gateway has no notation for JSONPath (notation.jsonpath)")
        words = {"kind": kind, "path": path, "steps": path.removeprefix("$"), "pattern": pattern}
        return _filled(self.jsonpath, words)


def _filled(template: Any, words: Mapping[str, str]) -> Any:
    match template:
        case str():
            for name, word in words.items():
                template = template.replace(f"{{{name}}}", word)
            return template
        case list():
            return [_filled(item, words) for item in template]
        case dict():
            return {_filled(key, words): _filled(item, words) for key, item in template.items()}
        case _:
            return template
