"""An envelope does not become dearer unnoticed: instructions are counted, and no clock is asked."""

import os

import pytest
from bench.guard import Counts, Unable, count, load, variants

PROGRAM_THAT_PARSES_TWICE = "tests.bench.slower"


def counted(variant: str, program: str = "bench.guard") -> Counts:
    try:
        return count(variant, program)
    except Unable as why:
        if os.environ.get("CI"):
            raise  # there scripts/setup-tests has installed what it takes
        pytest.skip(str(why))


@pytest.mark.slow
@pytest.mark.parametrize("variant", variants())
def test_an_envelope_costs_hardly_more_instructions_than_when_it_was_last_written_down(variant: str) -> None:
    assert not load().exceeded(variant, counted(variant))


@pytest.mark.slow
def test_parsing_every_envelope_once_more_is_noticed() -> None:
    variant = variants()[0]
    assert load().exceeded(variant, counted(variant, PROGRAM_THAT_PARSES_TWICE))


def test_every_variant_and_shape_has_a_bound() -> None:
    bounds = load()
    assert bounds.margin > 1
    assert set(bounds.ratios) == {"compiled", "pure Python"}
    shapes = {frozenset(ratios) for ratios in bounds.ratios.values()}
    assert len(shapes) == 1
