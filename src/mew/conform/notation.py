"""PURE. How the gateway under test writes the patterns that the document names without a notation (§4.2)."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from .verdicts import NotOffered

__all__ = ["OURS", "Notation"]


class Notation(Struct, frozen=True, forbid_unknown_fields=True):
    """Templates; one that is empty, or not given, says that the gateway has no such patterns, or nobody said how.

    `regex` is a pattern in which `{expression}` stands for the expression. `jsonpath` is a capability with `{kind}`,
    `{pattern}` for what the path must find, and `{path}`, like `$.params.name`, or `{steps}`, the same without `$`.
    """

    regex: Any = ""
    jsonpath: Any = ""

    def expression(self, expression: str) -> Any:
        """A regular expression as a pattern. It has `^` and `$`, so that it does not matter whether it is searched for.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.regex:
            raise NotOffered(
                "the kit was not told how the gateway writes regular expressions ([notation] regex)"
            )
        return _filled(self.regex, {"expression": f"^({expression})$"})

    def looking(self, kind: str, path: str, pattern: str) -> Any:
        """The capability to send this kind where a JSONPath, from the payload on, finds what fits.

        Raises:
            NotOffered: the gateway has none.
        """
        if not self.jsonpath:
            raise NotOffered("the kit was not told how the gateway writes JSONPath ([notation] jsonpath)")
        words = {"kind": kind, "path": path, "steps": path.removeprefix("$"), "pattern": pattern}
        return _filled(self.jsonpath, words)


OURS: Final = Notation("/{expression}/", {"kind": "{kind}", "payload": {"{path}": "{pattern}"}})
"""How a gateway of mew writes them."""


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
