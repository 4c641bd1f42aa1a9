"""What lesson 05 builds is what the package has: its definitions are lifted out and compared on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer.model import positions

sizes = st.integers(1, 9)


def assert_positions_are_the_packages(built: dict, length: int, pairs: int, offset: int) -> None:
    width, most = 2 * pairs, offset + length + 3
    torch.testing.assert_close(built["sinusoids"](most, width), positions.sinusoids(most, width))
    generator = torch.Generator().manual_seed(length)
    x = torch.randn(2, length, width, generator=generator)
    fixed = built["SinusoidalTable"](width, most)
    assert not list(fixed.parameters())
    assert not fixed.state_dict()
    torch.testing.assert_close(fixed.add(x, offset), positions.SinusoidalPositions(width, 2, most).add(x, offset))
    ours, theirs = built["LearnedTable"](width, most), positions.LearnedPositions(width, 2, most)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    torch.testing.assert_close(ours.add(x, offset), theirs.add(x, offset))
    vector = torch.randn(width, generator=generator)
    turned = positions.RotaryPositions(width, width, most).rotate(vector.view(1, 1, 1, -1), offset)
    torch.testing.assert_close(built["turn"](vector, offset), turned.flatten())


POSITIONS = lifted("05_positions")


@given(length=sizes, pairs=sizes, offset=st.integers(0, 40))
def test_positions_of_lesson_05(length, pairs, offset):
    assert_positions_are_the_packages(POSITIONS, length, pairs, offset)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("table[:, 0::2] = angles.sin()", "table[:, 0::2] = angles.cos()"),
        ("10000**exponents", "1000**exponents"),
        ("/ d_model  #", "/ 2  #"),
        ("table[offset : offset + x.size(1)]", "table[: x.size(1)]"),
        ("(2 * i / len(vector))", "(i / len(vector))"),
        ("even * math.sin(angle) + odd", "even * math.sin(angle) - odd"),
    ],
)
def test_a_change_in_lesson_05_is_noticed(old, new):
    changed = lifted("05_positions", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_positions_are_the_packages(changed, 4, 3, 5)
