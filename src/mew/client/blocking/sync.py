"""The synchronous face, for scripts and notebooks: the same client, on an event loop in a thread of its own.

    with mew.connect_sync("ws://localhost:8080", space="demo", token=...) as me:
        me.chat("hello")
        total = me.call("calculator", "add", {"a": 2, "b": 3})
        for proposal in me.proposals():
            proposal.approve()

Everything is as it is there, without `async` and `await`; any thread may use it, also one that runs an event loop.

- A proposal has `wait(timeout_s)`, what is iterated over `next_within(timeout_s)`.
- Ctrl-C while something waits cancels it there, as its docstring says, and is raised here.
- Callbacks (`on_progress`, `progress`) are called in the thread that waits, so they may use the client; an exception
  that one raises ends the call. What `ProposalBook.for_reviewer` asks is asked in the loop's thread, and may not.
- When somebody cancels a reasoning, what its block waits for, or else its next call, raises `Cancelled`, and execution
  goes on after the block. `cancelled` and other properties can be read meanwhile, so that long work can look. A block
  is of the thread that entered it.
- After `close`, everything raises `Disconnected`.

The types are in `sync.pyi`, which `scripts/sync_stub.py` makes of the classes named here.
"""

import ssl
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from mew.client.chat import ChatQueue as _ChatQueue
from mew.client.chat import ChatRoom as _ChatRoom
from mew.client.client import Client as _Client
from mew.client.client import connect
from mew.client.connection.feed import Feed as _Feed
from mew.client.connection.websocket import Via
from mew.client.history import History as _History
from mew.client.management import Oversight as _Oversight
from mew.client.mcp.questions import Question as _Question
from mew.client.proposals.proposer import Proposal as _Proposal
from mew.client.proposals.review import Review as _Review
from mew.client.reasoning import Reasoning as _Reasoning
from mew.client.reasoning import Reasonings as _Reasonings
from mew.client.streams.reader import Reader as _Reader
from mew.client.streams.stream import Stream as _Stream
from mew.client.streams.streams import Streams as _Streams
from mew.proposals.book import ProposalBook as _ProposalBook
from mew.proposals.catalogue import Catalogue as _Catalogue

from .job import Cancelled
from .portal import Portal
from .proxy import Proxy

__all__ = [
    "Cancelled",
    "Catalogue",
    "ChatQueue",
    "ChatRoom",
    "Client",
    "Feed",
    "History",
    "Oversight",
    "Proposal",
    "ProposalBook",
    "Question",
    "Reader",
    "Reasoning",
    "Reasonings",
    "Review",
    "Stream",
    "Streams",
    "connect_sync",
    "host",
]

Item = TypeVar("Item")


def connect_sync(
    url: str | None = None,
    *,
    space: str | None = None,
    token: str | Path | None = None,
    participant: str | None = None,
    via: Via = Via.HEADER,
    tls: ssl.SSLContext | None = None,
    first_within_s: float = 0.0,
    recall: int = 0,
) -> "Client":
    """Connect to a space, as `connect` does; `close` it in the end, or have `with` do that.

        with mew.connect_sync("ws://localhost:8080", space="demo", token=Path("ann.token")) as me:
            me.chat("hello")

    One that is dropped is closed, and none keeps the process from ending.

    Raises:
        ValueError: the URL is not one of a gateway, or has a token in it.
        ConnectError: nobody is there, or we are not let in.
    """
    there = connect(
        url,
        space=space,
        token=token,
        participant=participant,
        via=via,
        tls=tls,
        first_within_s=first_within_s,
        recall=recall,
    )
    return host(Portal(), there)


def host(portal: Portal, there: _Client) -> "Client":
    """Connect a client on the loop of a portal, beside others; with the last of them, the portal is closed."""
    return Client(portal, portal.host(there))


class Client(Proxy, of=_Client, without=["connection"]):
    """Somebody in a space, until `close`; as a context, closed in the end.

    It reconnects by itself, is replayed what it missed, and sends again what was never accepted.
    """

    def close(self) -> None:
        """Leave the space; returns when the thread is gone. What other threads wait for ends, or raises."""
        self._portal.dismiss(self._thing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Feed(Proxy, Generic[Item], of=_Feed): ...


class History(Proxy, of=_History): ...


class Review(Proxy, of=_Review): ...


class Proposal(Proxy, of=_Proposal): ...


class ProposalBook(Proxy, of=_ProposalBook): ...


class Question(Proxy, of=_Question): ...


class Catalogue(Proxy, of=_Catalogue): ...


class ChatRoom(Proxy, of=_ChatRoom): ...


class ChatQueue(Proxy, of=_ChatQueue): ...


class Reasoning(Proxy, of=_Reasoning): ...


class Reasonings(Proxy, of=_Reasonings): ...


class Streams(Proxy, of=_Streams, without=["connection"]): ...


class Stream(Proxy, of=_Stream, without=["connection"]): ...


class Reader(Proxy, of=_Reader): ...


class Oversight(Proxy, of=_Oversight): ...
