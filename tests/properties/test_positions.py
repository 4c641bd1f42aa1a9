"""The properties for which the position schemes were invented."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytransformer.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions, sinusoids


def test_sinusoids_are_the_papers_formula():
    table = sinusoids(50, 12)
    for position in (0, 1, 7, 49):
        for i in range(6):
            angle = position / 10_000 ** (2 * i / 12)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@given(offset=st.integers(0, 200), width=st.sampled_from([2, 16, 64]))
def test_a_shift_by_k_is_one_linear_map_for_every_position(offset, width):
    table = sinusoids(400, width).double()
    frequencies = 10_000 ** (-torch.arange(0, width, 2).double() / width)
    turn = torch.zeros(width, width, dtype=torch.float64)
    for i, angle in enumerate((offset * frequencies).tolist()):
        block = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        turn[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    torch.testing.assert_close(table[:200] @ turn.T, table[offset : offset + 200], atol=1e-6, rtol=0)


@given(width=st.sampled_from([2, 8, 32]), one=st.integers(0, 60), other=st.integers(0, 60), shift=st.integers(0, 60))
def test_rotary_scores_depend_only_on_the_offset(width, one, other, shift):
    rotary = RotaryPositions(d_model=64, d_k=width, max_length=128).double()
    query, key = torch.randn(2, 1, 1, 1, width, dtype=torch.float64)

    def score(query_position, key_position):
        return (rotary.rotate(query, query_position) * rotary.rotate(key, key_position)).sum()

    torch.testing.assert_close(score(one, other), score(one + shift, other + shift), atol=1e-5, rtol=0)


def test_rotary_keeps_lengths_and_turns_by_position():
    rotary = RotaryPositions(d_model=64, d_k=8, max_length=16)
    heads = torch.randn(2, 3, 10, 8)
    turned = rotary.rotate(heads)
    torch.testing.assert_close(turned.norm(dim=-1), heads.norm(dim=-1))
    torch.testing.assert_close(turned[:, :, 0], heads[:, :, 0])
    pairs = torch.view_as_complex(heads.unflatten(-1, (4, 2)).contiguous())
    angles = torch.arange(10)[:, None] * 10_000 ** (-torch.arange(0, 8, 2) / 8)
    expected = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    torch.testing.assert_close(turned, expected)


@pytest.mark.parametrize("scheme", [SinusoidalPositions, LearnedPositions])
@given(offset=st.integers(0, 12))
def test_an_offset_continues_where_the_sequence_stopped(scheme, offset):
    positions = scheme(d_model=8, d_k=4, max_length=20)
    x = torch.randn(2, 20, 8)
    whole = positions.add(x)
    torch.testing.assert_close(positions.add(x[:, offset : offset + 5], offset), whole[:, offset : offset + 5])


def test_only_learned_positions_have_weights():
    assert not list(SinusoidalPositions(8, 4, 20).parameters())
    assert not SinusoidalPositions(8, 4, 20).state_dict(), "the table must not stand in saved models"
    assert [tuple(p.shape) for p in LearnedPositions(8, 4, 20).parameters()] == [(20, 8)]
