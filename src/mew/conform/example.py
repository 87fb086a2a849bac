"""The files that a first run needs: a space of ours with every role in it, and where their tokens are."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mew.protocol.json import encode_json

from .roles import KICKED, PEER_SECOND_TOKEN, ROLES, SECOND_SPACE_ROLES, SPARES

__all__ = ["write_example"]

SPACE: Final = "conform"
SECOND: Final = "second"
MAIL_PORT: Final = 2525
_CHAT: Final = ({"kind": "chat"},)
_OPTIONAL: Final = (
    "[notation]  # how this gateway writes what the document names without saying how; leave out what it does not have",
    "regex = '/{expression}/'",
    "jsonpath = {kind = '{kind}', payload = {'{path}' = '{pattern}'}}",
    "",
    f"# [roles.{PEER_SECOND_TOKEN}]  # the peer by a second token, where a participant may have two",
    '# token_env = "PEER_SECOND_TOKEN"',
    "",
)


def write_example(folder: Path, url: str) -> tuple[Path, Path]:
    """A `space.yaml` for a gateway of ours and a `conform.toml` for the kit, in a folder that is made if need be.

    Raises:
        FileExistsError: one of them is there already; nothing is overwritten.
        OSError: they cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    space, kit = folder / "space.yaml", folder / "conform.toml"
    for file in (space, kit):
        if file.exists():
            raise FileExistsError(f"{file} is there already")
    space.write_text(_space(), encoding="utf-8")
    kit.write_text(_kit(url), encoding="utf-8")
    return space, kit


def _cast() -> Mapping[str, tuple[tuple[Any, ...], str]]:
    spares = dict.fromkeys(SPARES, (_CHAT, "may chat, in place of guests"))
    return {**ROLES, **spares, KICKED: (_CHAT, "may chat until it is kicked, for good")}


def _space() -> str:
    lines = [
        "# A space for the conformance kit, and a second one beside it.",
        "# Another gateway needs the same participants, with these capabilities.",
        "journal: off",
        f"smtp: {{host: 127.0.0.1, port: {MAIL_PORT}, from: mew@example.org, security: none}} # the kit takes it",
        "spaces:",
    ]
    for space, config in ((SPACE, _cast()), (SECOND, SECOND_SPACE_ROLES)):
        lines += [f"  - id: {space}", "    participants:"]
        for name, (capabilities, means) in config.items():
            lines += [f"      {name}: # {means}", "        capabilities:"]
            lines += [f"          - {encode_json(one).decode()}" for one in capabilities]
    return "\n".join(lines) + "\n"


def _kit(url: str) -> str:
    lines = [
        "# Where the gateway is, and a token for each role: 'token', 'token_env' or 'token_file', beside this file.",
        "# A role that is left out is not played; what needs it is then 'not offered'.",
        f'url = "{url}"',
        '# http = "http://127.0.0.1:8080"  # where the HTTP API is, if not there as well; "" where there is none',
        f'space = "{SPACE}"',
        'join = "header"  # or "subprotocol", or "frame": the token in a first message',
        "timeout_s = 2.0  # how long an answer may take",
        f'mail = "127.0.0.1:{MAIL_PORT}"  # where the kit takes the mail that the gateway sends; or leave it out',
        "",
    ]
    for name, (_, means) in _cast().items():
        lines += [f"[roles.{name}]  # {means}", f'token_file = ".mew/tokens/{SPACE}/{name}.token"', ""]
    lines += ["[second_space]  # leave it out where the gateway serves one space", f'space = "{SECOND}"', ""]
    for name, (_, means) in SECOND_SPACE_ROLES.items():
        lines += [
            f"[second_space.roles.{name}]  # {means}",
            f'token_file = ".mew/tokens/{SECOND}/{name}.token"',
            "",
        ]
    return "\n".join([*lines, *_OPTIONAL])
