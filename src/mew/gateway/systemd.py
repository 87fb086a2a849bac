"""Notify systemd of the gateway's state, as `Type=notify` units expect (sd_notify(3))."""

import os
import socket
from contextlib import suppress

__all__ = ["notify"]


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or the like to the service manager, if there is one.

    A datagram that cannot be sent is dropped: the gateway runs without it.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # in Linux's abstract namespace
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(state.encode(), address)
