"""What Prometheus scrapes: read from the rooms when it asks, so that no delivery pays for it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from mew.gateway.node import Node
from mew.gateway.room.room import Room
from mew.journal.files.disk_watch import DiskStatus

__all__ = ["Metrics"]

_COUNTERS: dict[str, tuple[str, Callable[[Room], float]]] = {
    "mew_envelopes_received": (
        "Envelopes that came in, over both doors.",
        lambda room: room.counters.received,
    ),
    "mew_envelopes_refused": ("Envelopes and frames that were refused.", lambda room: room.counters.refused),
    "mew_deliveries": ("Envelopes sent out, one for each receiver.", lambda room: room.counters.delivered),
    "mew_stream_frames": ("Stream frames forwarded.", lambda room: room.counters.frames),
    "mew_stream_frames_dropped": (
        "Stream frames dropped for readers that did not keep up, one for each reader.",
        lambda room: room.counters.frames_dropped,
    ),
    "mew_log_entries": ("Events that have their place in the order.", lambda room: room.space.seq),
}

_GAUGES: dict[str, tuple[str, Callable[[Room], float]]] = {
    "mew_connections": ("Connections to this node.", lambda room: len(room.connections)),
    "mew_participants": ("Participants connected, to any node.", lambda room: len(room.space.state.members)),
    "mew_streams": ("Open streams.", lambda room: len(room.space.state.streams)),
    "mew_history_envelopes": ("Envelopes kept for those who ask.", lambda room: len(room.history)),
    "mew_history_bytes": ("Bytes of those.", lambda room: room.history.bytes),
    "mew_outbox_bytes": (
        "Bytes that wait for slow readers.",
        lambda room: sum(connection.outbox.waiting_bytes for connection in room.connections.values()),
    ),
    "mew_outbox_bytes_max": (
        "Bytes that wait for the slowest reader.",
        lambda room: max(
            (connection.outbox.waiting_bytes for connection in room.connections.values()), default=0
        ),
    ),
}


class Metrics:
    """The metrics of one gateway: its rooms, and the process it runs in."""

    CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, node: Node, version: str, polls: Callable[[Room], float]) -> None:
        self._rooms = CollectorRegistry()
        self._rooms.register(_Rooms(node, version, polls))
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)

    async def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        process = await asyncio.to_thread(generate_latest, self._process)  # it reads files under /proc
        return generate_latest(self._rooms) + process


class _Rooms(Collector):
    def __init__(self, node: Node, version: str, polls: Callable[[Room], float]) -> None:
        self._node = node
        self._version = version
        self._gauges = {**_GAUGES, "mew_polls": ("HTTP requests that wait for something new.", polls)}

    def collect(self) -> Iterator[Metric]:
        rooms: Mapping[str, Room] = self._node.rooms
        yield InfoMetricFamily("mew", "The gateway.", value={"version": self._version})
        up = GaugeMetricFamily("mew_space_up", "1 while the space runs, 0 when it failed.", labels=["space"])
        for name in {**rooms, **self._node.failed}:
            up.add_metric([name], 0 if name in self._node.failed else 1)
        yield up
        yield from _disk(self._node.disk)
        for name, (text, value) in _COUNTERS.items():
            yield _filled(CounterMetricFamily(name, text, labels=["space"]), rooms, value)
        for name, (text, value) in self._gauges.items():
            yield _filled(GaugeMetricFamily(name, text, labels=["space"]), rooms, value)


def _disk(disk: DiskStatus) -> Iterator[Metric]:
    """What the journal takes and has, as last looked at; nothing if there is no journal."""
    if disk.usage is None:
        return
    yield GaugeMetricFamily(
        "mew_journal_bytes", "Bytes of the journal and its index.", value=disk.usage.journal_bytes
    )
    yield GaugeMetricFamily(
        "mew_journal_disk_bytes", "Bytes of the journal's disk.", value=disk.usage.disk_bytes
    )
    yield GaugeMetricFamily(
        "mew_journal_disk_free_bytes", "Free bytes of the journal's disk.", value=disk.usage.free_bytes
    )
    yield GaugeMetricFamily(
        "mew_journal_warnings",
        "Warnings about the room that the journal takes or has.",
        value=len(disk.warnings),
    )


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, rooms: Mapping[str, Room], value: Callable[[Room], float]
) -> Metric:
    for name, room in rooms.items():
        family.add_metric([name], value(room))
    return family
