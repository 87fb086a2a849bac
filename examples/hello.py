"""Join a space, say hello, and see it come back: python examples/hello.py URL SPACE TOKEN_FILE"""

import asyncio
import sys
import uuid
from pathlib import Path

import aiohttp


async def main(url: str, space: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(f"{url}/ws", params={"space": space}) as socket,
    ):
        welcome = await socket.receive_json()
        me = welcome["payload"]["you"]["id"]
        kinds = [capability["kind"] for capability in welcome["payload"]["you"]["capabilities"]]
        print(f"I am {me}; I may send {', '.join(kinds)}")

        said = {
            "protocol": "mew/v0.4",
            "id": str(uuid.uuid4()),
            "from": me,
            "kind": "chat",
            "payload": {"text": "Hello everyone!"},
        }
        await socket.send_json(said)
        async for message in socket:
            envelope = message.json()
            print(f"{envelope['from']:>15}  {envelope['kind']}  {envelope['payload']}")
            if envelope["id"] == said["id"]:
                break  # the echo: the gateway accepted it, and everyone has it


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).read_text().strip()))
