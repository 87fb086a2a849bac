"""Options of the whole suite."""

import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write what happens now into the scenarios; read the diff"
    )


def pytest_configure() -> None:
    """As from a terminal: a job in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
