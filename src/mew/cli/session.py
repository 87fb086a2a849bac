"""What all everyday commands share: where the space is and who one is there, and how a command says no."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar, get_args

import typer

from .exit_codes import Exit
from .locate.gateway import (
    AsName,
    Door,
    Flags,
    GatewayUrl,
    JoinBy,
    JoinHow,
    NearConfig,
    TokenFile,
    TokenText,
    Wrapped,
    reach_as_person,
    reach_as_reviewer,
)
from .locate.journal import Failed, SpaceName
from .render.text import whole

if TYPE_CHECKING:
    from mew.client.client import Client

__all__ = ["Place", "SaidNo", "everyday", "said_plainly"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_PANEL: Final = "Where, and as whom"
_FLAGS: Final = {
    "gateway": GatewayUrl,
    "space": SpaceName,
    "who": AsName,
    "token": TokenText,
    "token_file": TokenFile,
    "config": NearConfig,
    "wrapped": Wrapped,
    "join": JoinBy,
}
_JSON: Final = Annotated[bool, typer.Option("--json", help="Say it as JSON, for programs.")]
_NOBODY_THERE: Final = "; is the gateway running? 'mew gateway' starts one, 'mew doctor' looks what is wrong"


class SaidNo(Exception):
    """What was asked for is not to be had; the message says why."""


@dataclass(frozen=True)
class Place:
    """What was typed about where and as whom, and for whom the answer is.

    `decides`: whoever is not named is the reviewer, who may approve.
    """

    flags: Flags
    json: bool = False
    decides: bool = False

    @cached_property
    def door(self) -> Door:
        """Where to connect.

        Raises:
            Failed: something is missing; the sentence says what to give.
        """
        return reach_as_reviewer(self.flags) if self.decides else reach_as_person(self.flags)

    def run(self, core: "Callable[[Client], Awaitable[_Result]]") -> _Result:
        """Connect, and do it there.

        Raises:
            Failed: as `door`.
            MewError: no connection, or what was asked for was not done.
        """
        from mew.client.client import connect  # loads what not every command needs
        from mew.client.connection.websocket import Via

        door = self.door
        via = Via.FIRST_FRAME if self.flags.join is JoinHow.FRAME else Via.HEADER
        try:
            there = connect(door.url, space=door.space, token=door.token, participant=door.who, via=via)
        except ValueError as error:
            raise Failed(str(error)) from error

        async def inside() -> _Result:
            async with there as me:
                return await core(me)

        return asyncio.run(inside())


def everyday(command: Callable[Concatenate[Place, _Parameters], None]) -> Callable[..., None]:
    """A command of Typer from a function whose first parameter is a `Place`: it gets the options for that.

    What goes wrong is one sentence on stderr and an exit code.
    """
    place, *own = inspect.signature(command, eval_str=True).parameters.values()
    assert place.annotation is Place, f"the first parameter of {command.__name__} is no Place"

    call: Callable[..., None] = command

    def typed(**given: Any) -> None:
        with said_plainly(given.pop("typed_as").command_path):
            _check_text(given)
            flags = Flags(**{name: given.pop(name) for name in _FLAGS})
            call(Place(flags, given.pop("as_json")), **given)

    added = [_keyword("typed_as", typer.Context), _keyword("as_json", _JSON, default=False)]
    added += [_keyword(name, _in_panel(option)) for name, option in _FLAGS.items()]
    every = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own] + added
    typed.__name__, typed.__doc__, typed.__module__ = command.__name__, command.__doc__, command.__module__
    typed.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]  # what Typer looks at
    typed.__annotations__ = {one.name: one.annotation for one in every}
    return typed


@contextmanager
def said_plainly(command: str) -> Iterator[None]:
    """Inside it, what goes wrong ends the command with a sentence on stderr, and no traceback."""
    from mew.client.errors import ConnectError, Disconnected, MewError
    from mew.client.mcp.validation import InvalidArguments
    from mew.protocol.errors import InvalidCapability

    try:
        yield
    except ConnectError as error:
        nobody = error.come_back and error.status is None
        _end(command, f"{error}{_NOBODY_THERE if nobody else ''}", Exit.WRONG)
    except (Failed, Disconnected, InvalidArguments, InvalidCapability) as error:
        _end(command, str(error), Exit.WRONG)
    except (SaidNo, MewError) as error:
        _end(command, str(error), Exit.SAID_NO)


def _end(command: str, text: str, code: int) -> None:
    typer.echo(f"{command}: {whole(text)}", err=True)
    raise typer.Exit(code) from None


def _check_text(given: dict[str, Any]) -> None:
    """A shell may hand over any bytes; what is no text has no form in JSON."""
    for values in given.values():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
                raise Failed(f"{value!r} is not text in UTF-8")


def _keyword(name: str, annotation: Any, default: object = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _in_panel(option: Any) -> Any:
    kind, written = get_args(option)
    shown = copy(written)
    shown.rich_help_panel = _PANEL
    return Annotated[kind, shown]
