"""Options of the whole suite."""

import gc
import logging
import signal

import pytest
from hypothesis import settings

settings.register_profile("mew", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("mew")


logging.getLogger("asyncio").setLevel(
    logging.ERROR
)  # in debug mode it warns of what took long, on a busy machine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write what happens now into the scenarios; read the diff"
    )


def pytest_configure() -> None:
    """As from a terminal: a job in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected, which leaves next to no garbage


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays: to go through it again stopped them for half a second each time."""
    gc.freeze()
    gc.enable()
