"""Send a file of any size to somebody, or save those that come:

python examples/upload.py URL SPACE TOKEN_FILE send FILE WHO
python examples/upload.py URL SPACE TOKEN_FILE save FOLDER
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import mew


def show(done: int, total: int | None) -> None:
    of = f" of {total:,}" if total is not None else ""
    print(f"\r{done:,}{of} bytes", end="", file=sys.stderr, flush=True)


async def send(me: mew.Client, file: Path, who: str) -> None:
    sent = await me.upload(file, target=who, progress=show)
    print(
        f"\nsent {sent.size:,} bytes, SHA-256 {sent.sha256}, saved by {', '.join(sent.confirmed) or 'nobody'}"
    )


async def save(me: mew.Client, folder: Path) -> None:
    print(f"{me.id} waits for files", flush=True)
    async for stream in me.streams.incoming():
        path = folder / mew.safe_name(stream)  # never a path of the sender's choosing
        try:
            saved = await me.save(stream, path, progress=show)
            print(f"\n{path} from {stream.owner}: {saved.size:,} bytes, SHA-256 {saved.sha256}", flush=True)
        except mew.StreamBroken as broken:
            print(f"\nnothing saved from {stream.owner}: {broken}", flush=True)


async def main(url: str, space: str, token: str, what: str, where: str, *who: str) -> None:
    async with mew.connect(url, space=space, token=Path(token)) as me:
        await (send(me, Path(where), *who) if what == "send" else save(me, Path(where)))


if __name__ == "__main__":
    if (sys.argv[4:5], len(sys.argv)) not in ((["send"], 7), (["save"], 6)):
        sys.exit(__doc__)
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
