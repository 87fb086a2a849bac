"""What the commands that act in a space share: the options that say where and as whom, and the connection."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar, get_args

import typer

from .errors import CommandError
from .locate.login import (
    AsOption,
    GatewayOption,
    JoinMode,
    JoinOption,
    Login,
    LoginOptions,
    SpaceFileOption,
    SpaceOption,
    TokenFileOption,
    TokenOption,
    WrappedOption,
    find_person_login,
    find_reviewer_login,
)

if TYPE_CHECKING:
    from mew.client.client import Client

__all__ = ["JsonOption", "SpaceSession", "session_command"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_PANEL: Final = "Connection"
_OPTIONS: Final = {
    "gateway": GatewayOption,
    "space": SpaceOption,
    "who": AsOption,
    "token": TokenOption,
    "token_file": TokenFileOption,
    "config": SpaceFileOption,
    "wrapped": WrappedOption,
    "join": JoinOption,
}


@dataclass(frozen=True)
class SpaceSession:
    """Where a command acts and as whom, and whether it answers a person or a program.

    With `decides`, the default is the reviewer, who may approve.
    """

    options: LoginOptions
    json: bool = False
    decides: bool = False

    @cached_property
    def login(self) -> Login:
        """Where to connect.

        Raises:
            CommandError: something is missing; the message says what to give.
        """
        return find_reviewer_login(self.options) if self.decides else find_person_login(self.options)

    def run(self, core: "Callable[[Client], Awaitable[_Result]]") -> _Result:
        """Connect, and run `core` with the client.

        Raises:
            CommandError: as `login`.
            MewError: no connection, or what was asked for was not done.
        """
        from mew.client.client import connect  # loads what not every command needs
        from mew.client.connection.websocket import Via

        login = self.login
        via = Via.FIRST_FRAME if self.options.join is JoinMode.FRAME else Via.HEADER
        try:
            connecting = connect(
                login.url, space=login.space, token=login.token, participant=login.who, via=via
            )
        except ValueError as error:
            raise CommandError(str(error)) from error

        async def inside() -> _Result:
            async with connecting as client:
                return await core(client)

        return asyncio.run(inside())


def session_command(command: Callable[Concatenate[SpaceSession, _Parameters], None]) -> Callable[..., None]:
    """Make a Typer command from a function whose first parameter is a `SpaceSession`, with the options for it."""
    session, *own = inspect.signature(command, eval_str=True).parameters.values()
    assert session.annotation is SpaceSession, (
        f"the first parameter of {command.__name__} is not a SpaceSession"
    )
    call: Callable[..., None] = command

    def run(**given: Any) -> None:
        _check_text(given)
        options = LoginOptions(**{name: given.pop(name) for name in _OPTIONS})
        call(SpaceSession(options, given.pop("as_json")), **given)

    added = [_keyword("as_json", JsonOption, default=False)]
    added += [_keyword(name, _in_panel(option)) for name, option in _OPTIONS.items()]
    every = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own] + added
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]  # what Typer looks at
    run.__annotations__ = {one.name: one.annotation for one in every}
    return run


def _check_text(given: dict[str, Any]) -> None:
    """Refuse what is not text: a shell may pass any bytes, and these have no form in JSON."""
    for values in given.values():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
                raise CommandError(f"{value!r} is not UTF-8 text")


def _keyword(name: str, annotation: Any, default: object = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _in_panel(option: Any) -> Any:
    kind, written = get_args(option)
    shown = copy(written)
    shown.rich_help_panel = _PANEL
    return Annotated[kind, shown]
