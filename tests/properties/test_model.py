"""What must hold for every model, whatever its weights."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import COMBINATIONS, VOCAB, max_difference, random_ids, small_model

every_model = pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
lengths = st.integers(1, 12)


@every_model
@given(batch=st.integers(1, 3), source_length=lengths, target_length=st.integers(2, 12), data=st.data())
def test_no_position_sees_the_future(norm, positions, batch, source_length, target_length, data):
    model = small_model(norm=norm, positions=positions)
    source, target = random_ids(batch, source_length), random_ids(batch, target_length)
    changed_at = data.draw(st.integers(1, target_length - 1))
    changed = target.clone()
    changed[:, changed_at:] = (changed[:, changed_at:] - 3 + 7) % (VOCAB - 3) + 3
    before, after = model(source, target), model(source, changed)
    assert max_difference(before[:, :changed_at], after[:, :changed_at]) <= 1e-5
    assert max_difference(before[:, changed_at:], after[:, changed_at:]) > 1e-3


@every_model
def test_no_gradient_flows_from_the_past_to_the_future(norm, positions):
    model = small_model(norm=norm, positions=positions)
    memory = model.encode(random_ids(1, 5))
    embedded = model.embedding.target(random_ids(1, 6)).detach().requires_grad_()
    states = model.decoder(model.positions.add(embedded), memory, model._causal(random_ids(1, 6)))
    for position in range(6):
        (gradient,) = torch.autograd.grad(states[0, position].sum(), embedded, retain_graph=True)
        reached = gradient[0].abs().amax(-1) > 0
        assert reached.tolist() == [other <= position for other in range(6)]


@every_model
@given(extra=st.integers(1, 8), target_extra=st.integers(0, 8))
def test_padding_changes_nothing(norm, positions, extra, target_extra):
    model = small_model(norm=norm, positions=positions)
    source, target = random_ids(2, 7), random_ids(2, 5)
    pad = torch.nn.functional.pad
    padded = model(pad(source, (0, extra)), pad(target, (0, target_extra)))
    assert max_difference(model(source, target), padded[:, :5]) <= 1e-5


def test_padding_in_one_row_changes_no_row():
    model = small_model(window=1)
    source, target = random_ids(3, 9, padding=5), random_ids(3, 6)
    alone = torch.cat([model(row[row != 0][None], words[None]) for row, words in zip(source, target, strict=True)])
    assert max_difference(model(source, target), alone) <= 1e-5


@every_model
@given(order=st.permutations(range(4)))
def test_batch_order_changes_nothing(norm, positions, order):
    model = small_model(norm=norm, positions=positions)
    source, target = random_ids(4, 7, padding=3), random_ids(4, 5, padding=2)
    assert max_difference(model(source, target)[order], model(source[order], target[order])) <= 1e-5


@pytest.mark.parametrize("norm", ["post", "pre"])
@given(order=st.permutations(range(7)))
def test_without_positions_the_encoder_is_permutation_equivariant(norm, order):
    model = small_model(norm=norm, positions="none")
    source = random_ids(2, 7)
    states = model.encode(source).states
    assert max_difference(states[:, order], model.encode(source[:, order]).states) <= 1e-5


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_with_positions_it_is_not(positions):
    model = small_model(positions=positions)
    source = random_ids(1, 7)
    flipped = model.encode(source.flip(1)).states.flip(1)
    assert max_difference(model.encode(source).states, flipped) > 1e-2


@pytest.mark.parametrize("window", [None, 0, 2])
@every_model
@given(cuts=st.lists(st.integers(1, 9), max_size=4))
def test_cached_decoding_equals_uncached(norm, positions, window, cuts):
    """In pieces of any size: token by token, or a forced prefix first."""
    model = small_model(norm=norm, positions=positions, window=window)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 10)
    memory = model.encode(source)
    borders = sorted({0, *cuts, 10})
    pieces, cache = [], None
    for start, end in itertools.pairwise(borders):
        logits, cache = model.step(target[:, start:end], memory, cache)
        pieces.append(logits)
        assert cache.length == end
    assert max_difference(torch.cat(pieces, dim=1), model(source, target)) <= 1e-5


@every_model
def test_token_by_token_equals_all_at_once(norm, positions):
    model = small_model(norm=norm, positions=positions, tie_embeddings=False, output_bias=True)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 10)
    memory, cache, pieces = model.encode(source), None, []
    for token in target.split(1, dim=1):
        logits, cache = model.step(token, memory, cache)
        pieces.append(logits)
    assert max_difference(torch.cat(pieces, dim=1), model(source, target)) <= 1e-5


@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_selecting_rows_of_the_cache_equals_selecting_sentences(rows):
    model = small_model()
    source, target = random_ids(3, 8, padding=3), random_ids(3, 6)
    rows = torch.tensor(rows)
    memory = model.encode(source)
    _, cache = model.step(target[:, :4], memory)
    logits, _ = model.step(target[rows, 4:], memory, cache.select(rows))
    assert max_difference(logits, model(source[rows], target[rows])[:, 4:]) <= 1e-5
    assert max_difference(model.decode(target[rows], memory.select(rows)), model.decode(target, memory)[rows]) <= 1e-5


def test_stepping_leaves_the_old_cache_as_it_was():
    model = small_model()
    memory, target = model.encode(random_ids(2, 5)), random_ids(2, 4)
    _, cache = model.step(target[:, :2], memory)
    kept = cache.layers[0].past.key.clone()
    once, _ = model.step(target[:, 2:], memory, cache)
    again, _ = model.step(target[:, 2:], memory, cache)
    assert cache.length == 2
    assert torch.equal(cache.layers[0].past.key, kept)
    assert torch.equal(once, again)


@pytest.mark.parametrize("radius", [0, 1, 3])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_window_limits_reach_to_radius_times_layers(radius, layers):
    model = small_model(window=radius, num_layers=layers)
    embedded = model.positions.add(model.embedding.source(random_ids(1, 15))).detach().requires_grad_()
    mask = model._within_window(torch.ones(1, 1, 1, 15, dtype=torch.bool), 15)
    states = model.encoder(embedded, mask)
    for position in (0, 7, 14):
        (gradient,) = torch.autograd.grad(states[0, position].sum(), embedded, retain_graph=True)
        reached = (gradient[0].abs().amax(-1) > 0).nonzero().flatten().tolist()
        assert reached == [other for other in range(15) if abs(other - position) <= radius * layers]


@pytest.mark.parametrize("radius", [0, 2])
def test_a_window_limits_the_decoder_too(radius):
    model = small_model(window=radius, num_layers=1)
    source, target = random_ids(1, 5), random_ids(1, 12)
    changed = target.clone()
    changed[:, 0] = target[:, 0] % (VOCAB - 4) + 3 + 1
    moved = (model(source, target) - model(source, changed)).abs().amax(-1)[0] > 1e-5
    assert moved.tolist() == [position <= radius for position in range(12)]


@given(
    d_k=st.one_of(st.none(), st.integers(1, 9)),
    d_v=st.one_of(st.none(), st.integers(1, 9)),
    num_heads=st.sampled_from([1, 2, 4]),
)
def test_heads_may_have_any_size(d_k, d_v, num_heads):
    model = small_model(d_k=d_k, d_v=d_v, num_heads=num_heads)
    layer = model.encoder.layers[0].self_attention
    assert layer.w_q.weight.shape == layer.w_k.weight.shape == (num_heads * (d_k or 16 // num_heads), 16)
    assert layer.w_v.weight.shape == layer.w_o.weight.T.shape == (num_heads * (d_v or 16 // num_heads), 16)
    assert model(random_ids(2, 5), random_ids(2, 3)).shape == (2, 3, VOCAB)
