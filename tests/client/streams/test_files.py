"""Files over streams (§3.10), over a real space: whole or not at all, and nobody is overrun."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from tests.client.streaming import joined, seen, stage, tell

from mew.client.errors import Corrupt, Refused, StreamBroken
from mew.client.streams import files
from mew.client.streams.files import WINDOW_BYTES, Saved, Uploaded, safe_name, save, upload
from mew.client.streams.stream import Stream
from mew.client.streams.streams import Streams
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    with blockbuster_ctx("mew"):
        yield


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(b"#stream-1#" + bytes(range(256)) * 3_000)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where files are saved; nothing else is in it."""
    folder = tmp_path / "saved"
    folder.mkdir()
    return folder


async def both(
    sender: Streams, receiver: Streams, source: Path, path: Path, **fields: Any
) -> tuple[Uploaded, Saved]:
    incoming = receiver.incoming()

    async def receive() -> Saved:
        return await save(await anext(incoming), path)

    return await asyncio.gather(upload(sender, source, **fields), receive())


def data_of(path: Path) -> bytes:
    return path.read_bytes()


def size_of(path: Path) -> int:
    return path.stat().st_size


def content(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_arrives_as_it_was_sent(source: Path, folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        uploaded, saved = await both(ann, bob, source, folder / "copy", description="a test")
    data = data_of(source)
    assert data_of(folder / "copy") == data
    assert content(folder) == ["copy"]
    assert uploaded.size == saved.size == len(data)
    assert uploaded.sha256 == saved.sha256 == hashlib.sha256(data).hexdigest()
    assert saved.verified


async def test_name_and_size_are_shown_with_the_stream_and_the_checksum_in_its_close(source: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        uploaded = await upload(ann, source, target="bob", colour="blue")
        stream = await anext(incoming)
        size = size_of(source)
        assert stream.id == uploaded.stream_id
        assert (stream.fields["name"], stream.fields["size"]) == ("source.bin", size)
        assert stream.fields["expected_size_bytes"] == size
        assert stream.fields["colour"] == "blue"
        assert stream.close_reason == "complete"
        assert stream.close_fields == {"size": size, "sha256": uploaded.sha256}


async def test_an_empty_file_is_a_file(tmp_path: Path, folder: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    async with stage() as (_, ann, bob, _):
        uploaded, saved = await both(ann, bob, empty, folder / "copy")
    assert uploaded.size == saved.size == 0
    assert data_of(folder / "copy") == b""


async def test_who_saves_late_misses_nothing(source: Path, folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        await upload(ann, source)
        await save(await anext(incoming), folder / "copy")
    assert data_of(folder / "copy") == data_of(source)


async def test_progress_is_told_on_both_sides(source: Path, folder: Path) -> None:
    size = size_of(source)
    told: list[tuple[int, int | None]] = []
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        await upload(ann, source, progress=lambda done, total: told.append((done, total)))
        assert told[-1] == (size, size)
        assert [done for done, _ in told] == sorted({done for done, _ in told})
        told.clear()
        await save(
            await anext(incoming), folder / "copy", progress=lambda done, total: told.append((done, total))
        )
        assert told[-1] == (size, size)


@pytest.mark.slow
async def test_a_large_file_goes_no_faster_than_the_disk_that_saves_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, size = tmp_path / "large", 50 * MIB
    with source.open("wb") as file:
        for n in range(50):
            file.write(bytes([n]) * MIB)
    turn, sent, ahead = threading.Condition(), 0, 0
    put = files.PartialFile.put

    def put_as_late_as_possible(landing: files.PartialFile, pieces: list[bytes]) -> None:
        with turn:
            assert turn.wait_for(lambda: sent >= min(size, landing.size + WINDOW_BYTES - MIB), timeout=5)
        put(landing, pieces)

    def note(done: int, _: int | None) -> None:
        nonlocal sent
        with turn:
            sent = done
            turn.notify_all()

    def compare(done: int, _: int | None) -> None:
        nonlocal ahead
        ahead = max(ahead, sent - done)

    monkeypatch.setattr(files.PartialFile, "put", put_as_late_as_possible)
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()

        async def receive() -> Saved:
            return await save(await anext(incoming), folder / "copy", progress=compare)

        uploaded, saved = await asyncio.gather(upload(ann, source, progress=note), receive())
        assert uploaded.confirmed == ("bob",)
        assert ann.connection.gaps == bob.connection.gaps == []
    assert saved.sha256 == uploaded.sha256
    assert saved.size == size
    assert 0 < ahead <= WINDOW_BYTES + MIB


# Whole, or not at all.


@pytest.mark.parametrize("wrong", [{"size": 4}, {"sha256": "0" * 64}, {"sha256": 7}, {"size": "3"}])
async def test_what_is_not_what_was_sent_is_not_saved(folder: Path, wrong: dict[str, Any]) -> None:
    right = {"size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.write(b"abc")
        await stream.close(**{**right, **wrong})
        with pytest.raises(Corrupt):
            await save(await anext(incoming), folder / "copy")
    assert content(folder) == []


async def test_a_stream_that_says_nothing_of_itself_is_saved_unverified(folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            await stream.write(b"abc")
        saved = await save(await anext(incoming), folder / "copy")
    assert (saved.size, saved.verified) == (3, False)


async def test_a_stream_that_was_cancelled_leaves_what_was_there(folder: Path) -> None:
    (folder / "copy").write_bytes(b"old")
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.write(b"new")
        await stream.close("cancelled")
        with pytest.raises(StreamBroken, match="cancelled"):
            await save(await anext(incoming), folder / "copy")
    assert content(folder) == ["copy"]
    assert data_of(folder / "copy") == b"old"


async def test_a_link_is_replaced_and_not_followed(source: Path, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    (folder / "copy").symlink_to(elsewhere)
    async with stage() as (_, ann, bob, _):
        await both(ann, bob, source, folder / "copy")
    assert data_of(elsewhere) == b"precious"
    assert not (folder / "copy").is_symlink()


async def test_who_loses_the_connection_while_saving_has_no_file(folder: Path) -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.write(b"some")
        saving = asyncio.ensure_future(
            save(await anext(incoming), folder / "copy", progress=lambda *_: space.cut("bob"))
        )
        with pytest.raises(StreamBroken):
            await saving
    assert content(folder) == []


async def test_who_loses_the_connection_while_uploading_is_told_and_so_is_who_saves(
    source: Path, folder: Path
) -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        with pytest.raises(StreamBroken):
            await upload(ann, source, progress=lambda *_: space.cut("ann"))
        with pytest.raises(StreamBroken, match="owner_left"):
            await save(await anext(incoming), folder / "copy")
    assert content(folder) == []


async def test_a_save_that_is_cancelled_leaves_nothing(folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.write(b"some")
        begun = asyncio.Event()
        saving = asyncio.ensure_future(
            save(await anext(incoming), folder / "copy", progress=lambda *_: begun.set())
        )
        await begun.wait()
        async with seen(ann.connection, Kind.STREAM_ACK, received=4, error="CancelledError"):
            saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    assert content(folder) == []


async def test_an_upload_that_is_cancelled_says_so(source: Path) -> None:
    async with stage() as (_, ann, bob, _):
        begun = asyncio.Event()
        uploading = asyncio.ensure_future(upload(ann, source, progress=lambda *_: begun.set()))
        await begun.wait()
        async with seen(bob.connection, Kind.STREAM_CLOSE, reason="cancelled"):
            uploading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await uploading


async def test_where_there_is_no_folder_nothing_is_acknowledged(source: Path, folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        await upload(ann, source)
        with pytest.raises(FileNotFoundError):
            await save(await anext(incoming), folder / "missing" / "copy")


async def test_what_is_no_file_opens_no_stream(tmp_path: Path) -> None:
    async with stage() as (_, ann, _, _):
        with pytest.raises(FileNotFoundError):
            await upload(ann, tmp_path / "missing")
        with pytest.raises((IsADirectoryError, PermissionError)):
            await upload(ann, tmp_path)
        assert ann.active == ()


async def test_an_upload_that_is_refused_raises(source: Path) -> None:
    async with stage() as (space, _, _, _), joined(space, "mute") as mute:
        with pytest.raises(Refused):
            await upload(mute, source)


# Who is waited for.


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(bytes(WINDOW_BYTES + 2 * MIB))
    return path


def acknowledge(who: Streams, stream: Stream, received: object) -> None:
    who.connection.post(
        who.connection.compose(
            Kind.STREAM_ACK, {"stream_id": stream.id, "received": received}, to=[stream.owner]
        )
    )


async def test_an_upload_waits_for_who_acknowledges(large: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming, sent = bob.incoming(), 0

        def note(done: int, _: int | None) -> None:
            nonlocal sent
            sent = done

        uploading = asyncio.ensure_future(upload(ann, large, progress=note))
        stream = await anext(incoming)
        acknowledge(bob, stream, 0)
        reading, received = aiter(stream), 0
        while received <= WINDOW_BYTES:
            received += len(await anext(reading))
        await tell(bob, Kind.CHAT, text="it had time to go on")
        assert sent == received
        acknowledge(bob, stream, received)
        while received < size_of(large):
            received += len(await anext(reading))
        assert not uploading.done()
        acknowledge(bob, stream, received)
        assert (await uploading).confirmed == ("bob",)


async def test_who_is_silent_is_given_up(large: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        uploading = asyncio.ensure_future(upload(ann, large, silence_s=0.01))
        acknowledge(bob, await anext(incoming), 0)
        assert (await uploading).confirmed == ()


async def test_who_leaves_is_not_waited_for(large: Path) -> None:
    async with stage() as (space, ann, _, _):
        async with joined(space, "cam") as cam:
            incoming = cam.incoming()
            uploading = asyncio.ensure_future(upload(ann, large, target=["cam"]))
            stream = await anext(incoming)
            async with seen(ann.connection, Kind.STREAM_ACK):
                acknowledge(cam, stream, 0)
        assert (await uploading).confirmed == ()


async def test_who_cannot_save_it_is_not_waited_for(large: Path, folder: Path) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()

        async def fail() -> None:
            def full(done: int, total: int | None) -> None:
                raise OSError("no space left on device")

            with pytest.raises(OSError, match="no space"):
                await save(await anext(incoming), folder / "copy", progress=full)

        uploaded, _ = await asyncio.gather(upload(ann, large), fail())
        assert uploaded.confirmed == ()
    assert content(folder) == []


async def test_who_does_not_get_the_data_holds_nobody_up(large: Path, folder: Path) -> None:
    async with stage() as (_, ann, bob, eve):
        incoming = bob.incoming()
        uploading = asyncio.ensure_future(upload(ann, large, target="bob"))
        stream = await anext(incoming)
        acknowledge(eve, stream, 0)
        for nonsense in (-1, True, "7", None, 1.5, 10 * WINDOW_BYTES):
            acknowledge(bob, stream, nonsense)
        await save(stream, folder / "copy")
        assert (await uploading).confirmed == ("bob",)


async def test_who_may_not_acknowledge_saves_all_the_same(source: Path, folder: Path) -> None:
    heard: list[Envelope] = []
    async with stage() as (space, ann, _, _), joined(space, "mute") as mute:
        ann.connection.listen(lambda envelope, _: heard.append(envelope))
        _, saved = await both(ann, mute, source, folder / "copy")
    assert saved.verified
    assert Kind.STREAM_ACK not in {envelope.kind for envelope in heard}


async def test_what_was_saved_is_acknowledged_for_each_mebibyte(large: Path, folder: Path) -> None:
    said: list[int] = []

    def listen(envelope: Envelope, _: object) -> None:
        if envelope.kind == Kind.STREAM_ACK:
            assert envelope.to == ("ann",)
            said.append(envelope.content["received"])

    async with stage() as (_, ann, bob, _):
        ann.connection.listen(listen)
        await both(ann, bob, large, folder / "copy")
    assert said[0] == 0
    assert said[-1] == size_of(large)
    assert all(later - earlier >= MIB for earlier, later in pairwise(said[:-1]))


# Names.


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ann\\secret.txt", "secret.txt"),
        (".bashrc", "bashrc"),
        ("..", "download"),
        ("", "download"),
        (None, "download"),
        (7, "download"),
        ("a\x00b\n\u202ec.txt", "abc.txt"),
        ('a<>:"|?*b', "ab"),
        ("NUL", "_NUL"),
        ("com1.txt", "_com1.txt"),
        ("trailing. . ", "trailing"),
        ("grüße.txt", "grüße.txt"),
        ("x" * 500 + ".tar", "x" * 196 + ".tar"),
        ("世" * 200, "世" * 66),
        ("x." + "y" * 300, "x." + "y" * 198),
    ],
)
async def test_the_senders_name_is_made_harmless(said: object, name: str) -> None:
    fields: dict[str, Any] = {} if said is None else {"name": said}
    async with stage() as (_, ann, _, _):
        stream = await ann.open(**fields)
        assert safe_name(stream) == name
