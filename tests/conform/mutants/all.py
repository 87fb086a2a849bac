"""Every wrong gateway there is."""

from typing import Final

from . import (
    authentication,
    capabilities,
    connecting,
    control,
    delivery,
    envelopes,
    frames,
    grants,
    http,
    members,
    memory,
    patterns,
    polling,
    presence,
    profiles,
    proposals,
    silence,
    spaces,
    streams,
    subtle,
    talk,
    violations,
    welcomes,
)
from .breaks import Mutant

__all__ = ["MUTANTS"]

MUTANTS: Final[tuple[Mutant, ...]] = tuple(
    mutant
    for module in (
        authentication,
        capabilities,
        connecting,
        control,
        delivery,
        envelopes,
        frames,
        grants,
        http,
        members,
        memory,
        patterns,
        polling,
        presence,
        profiles,
        proposals,
        silence,
        spaces,
        streams,
        subtle,
        talk,
        violations,
        welcomes,
    )
    for mutant in module.MUTANTS
)
