"""PURE. URI templates (RFC 6570): `{name}` is one segment, `{+name}` any run of them; others are not taken.

What a variable stands for is decoded before a function sees it, so what could climb out of a directory is no match.
"""

import re
from typing import Any, Final
from urllib.parse import unquote

import re2

__all__ = ["UriTemplate"]

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"\+?[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")


class UriTemplate:
    """A URI, or a family of them. `shape` is the same for templates that match the same URIs."""

    def __init__(self, template: str) -> None:
        """Read a template.

        Raises:
            ValueError: no absolute URI, a variable of another form, one that occurs twice, or two side by side.
        """
        texts, variables = _VARIABLE.split(template)[::2], _VARIABLE.findall(template)
        self.text = template
        self.names = tuple(variable.removeprefix("+") for variable in variables)
        self.shape = _VARIABLE.sub(lambda found: "{+}" if found[1].startswith("+") else "{}", template)
        if not _SCHEME.fullmatch(template):
            raise ValueError(f"{template!r} is no absolute URI such as 'notes://all' or 'notes://{{name}}'")
        if any(not _NAME.fullmatch(variable) for variable in variables) or "{" in "".join(texts):
            raise ValueError(f"{template!r}: only {{name}} and {{+name}} are understood")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{template!r} names a variable twice")
        if "" in texts[1:-1]:
            raise ValueError(f"{template!r} has two variables with nothing between them")
        runs = ["(.+)" if variable.startswith("+") else "([^/?#]+)" for variable in variables]
        parts = [text for pair in zip(map(re.escape, texts), [*runs, ""], strict=True) for text in pair]
        self._pattern: Any = re2.compile("(?s)" + "".join(parts))  # linear in time: the URI is a stranger's

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables as this URI has them, decoded; nothing when it is not of this family."""
        try:
            found = self._pattern.fullmatch(uri)
            if found is None:
                return None
            values = [unquote(value, errors="strict") for value in found.groups()]
        except UnicodeError:
            return None
        taken = dict(zip(self.names, values, strict=True))
        safe = all(_is_safe(value, is_path=f"{{+{name}}}" in self.text) for name, value in taken.items())
        return taken if safe else None


def _is_safe(value: str, *, is_path: bool) -> bool:
    if "\0" in value or {".", ".."} & set(re.split(r"[\\/]", value)):
        return False
    return is_path or not (value.startswith(("/", "\\")) or _DRIVE.match(value))
