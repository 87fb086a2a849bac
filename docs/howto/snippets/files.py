"""Send a file, save what comes, and use a stream for other things."""

import asyncio
import tempfile
from collections.abc import AsyncIterable
from pathlib import Path

import mew
from mew.testing import Space


async def send(me: mew.Client, file: Path) -> None:
    sent = await me.upload(file, target="bob", description="the report", progress=show)
    print(f"{sent.size} bytes, SHA-256 {sent.sha256}, saved by {', '.join(sent.confirmed) or 'nobody'}")
    assert sent.confirmed == ("bob",)


def show(done: int, total: int | None) -> None:
    print(f"{done} of {total or 'unknown'} bytes")


async def save(me: mew.Client, folder: Path) -> None:
    async for stream in me.streams.incoming():
        path = folder / mew.safe_name(stream)  # never a path of the sender's choosing
        try:
            saved = await me.save(stream, path)
            print(f"{path.name} from {stream.owner}: {saved.size} bytes, verified: {saved.verified}")
        except mew.StreamBroken as lost:
            print(f"{path.name} from {stream.owner} is not whole: {lost}")  # there is no file


async def tell(me: mew.Client) -> None:
    async with await me.streams.open(target="bob", description="log") as stream:
        await stream.write("a line\n")  # one frame, up to 256 KiB
        await stream.write(b"\x00\x01")


async def listen(stream: AsyncIterable[bytes]) -> list[bytes]:
    return [data async for data in stream]  # one item a frame; ends when the stream is closed


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        file, received = Path(name, "report.bin"), Path(name, "received")
        await asyncio.to_thread(file.write_bytes, b"x" * 1_000_000)
        await asyncio.to_thread(received.mkdir)
        async with (
            Space({"ann": ["stream/*"], "bob": ["stream/*"]}) as space,
            asyncio.TaskGroup() as tasks,
            space.connect("ann") as ann,
            space.connect("bob") as bob,
        ):
            saving = tasks.create_task(save(bob, received))
            await asyncio.sleep(0)
            await send(ann, file)
            saving.cancel()
            saved = await asyncio.to_thread((received / "report.bin").read_bytes)
            assert saved == b"x" * 1_000_000

            incoming = bob.streams.incoming()
            await tell(ann)
            assert await listen(await anext(incoming)) == [b"a line\n", b"\x00\x01"]


if __name__ == "__main__":
    asyncio.run(main())
