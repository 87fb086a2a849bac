"""A script without async: python without_async.py URL SPACE TOKEN_FILE"""

import sys
from pathlib import Path

import mew


def main(url: str, space: str, token: Path) -> None:
    with mew.connect_sync(url, space=space, token=token) as me:
        heard = me.envelopes("chat")  # what comes from now on
        me.chat("hello")
        said = heard.next_within(5)  # or `for said in heard:`, which waits for ever
        assert said is not None
        print(said.sender, said.content["text"])

        print(me.call("calculator", "add", {"a": 2, "b": 3}))

        proposal = me.propose_call("calculator", "add", {"a": 4, "b": 5}, timeout_s=60)
        try:
            print(proposal.wait(0.1))
        except TimeoutError:
            print("nobody has decided yet")  # it goes on by itself
            proposal.withdraw()
        print(proposal.wait())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
