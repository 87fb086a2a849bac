"""A gateway that runs is found where it listens, whatever its file says."""

from mew.cli.locate.login import LoginOptions, find_login
from mew.gateway.address_file import read_address

from .process import Gateway


def test_a_gateway_on_any_free_port_is_found_in_its_folder(gateway: Gateway) -> None:
    assert read_address(gateway.config) == gateway.url
    found = find_login(LoginOptions(space="space-0", who="ann"), environ={}, here=gateway.config.parent)
    assert (found.url, found.space) == (gateway.url, "space-0")
