"""What must hold for every model before the Transformer, whatever its weights: the Transformer's own properties."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import VOCAB, max_difference, random_ids
from support_baselines import ATTENTIVE, BASELINES, small_baseline

from tinytransformer import padding_mask, record_attention

every_model = pytest.mark.parametrize("architecture", BASELINES)
lengths = st.integers(1, 12)
few = settings(max_examples=8)  # for each of the architectures


@every_model
@few
@given(batch=st.integers(1, 3), source_length=lengths, target_length=st.integers(2, 12), data=st.data())
def test_no_position_sees_the_future(architecture, batch, source_length, target_length, data):
    model = small_baseline(architecture)
    source, target = random_ids(batch, source_length), random_ids(batch, target_length)
    changed_at = data.draw(st.integers(1, target_length - 1))
    changed = target.clone()
    changed[:, changed_at:] = (changed[:, changed_at:] - 3 + 7) % (VOCAB - 3) + 3
    before, after = model(source, target), model(source, changed)
    assert max_difference(before[:, :changed_at], after[:, :changed_at]) <= 1e-5
    assert max_difference(before[:, changed_at:], after[:, changed_at:]) > 1e-3


def reached(states, inputs, position) -> list[int]:
    """The positions of the inputs that a gradient from one state reaches."""
    (gradient,) = torch.autograd.grad(states[0, position].sum(), inputs, retain_graph=True)
    return (gradient[0].abs().amax(-1) > 0).nonzero().flatten().tolist()


@every_model
@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_state_reaches_back_as_far_as_its_windows_and_never_ahead(architecture, num_layers):
    """Recurrent ones to the first token; ConvS2S two tokens for each layer, ByteNet 2, then 4, then 8 more."""
    model = small_baseline(architecture, num_layers=num_layers)
    memory = model.encode(random_ids(1, 5))
    embedded = model.embedding.target(random_ids(1, 20)).detach().requires_grad_()
    states = model.decoder(embedded, memory)
    back = {"convs2s": {1: 2, 3: 6}, "bytenet": {1: 2, 3: 14}}.get(architecture, {}).get(num_layers, 20)
    for position in (0, 1, 7, 19):
        assert reached(states, embedded, position) == list(range(max(0, position - back), position + 1))


@pytest.mark.parametrize(("architecture", "side"), [("convs2s", 3), ("bytenet", 7)])
def test_windows_of_the_encoder_reach_to_both_sides(architecture, side):
    model = small_baseline(architecture, num_layers=3)
    embedded = model.embedding.source(random_ids(1, 20)).detach().requires_grad_()
    states = model.encoder(embedded, torch.ones(1, 1, 1, 20, dtype=torch.bool)).states
    for position in (0, 10, 19):
        expected = [other for other in range(20) if abs(other - position) <= side]
        assert reached(states, embedded, position) == expected


@every_model
@few
@given(extra=st.integers(1, 8), target_extra=st.integers(0, 8))
def test_padding_changes_nothing(architecture, extra, target_extra):
    model = small_baseline(architecture)
    source, target = random_ids(2, 7), random_ids(2, 5)
    pad = torch.nn.functional.pad
    padded = model(pad(source, (0, extra)), pad(target, (0, target_extra)))
    assert max_difference(model(source, target), padded[:, :5]) <= 1e-5


@every_model
def test_padding_in_one_row_changes_no_row(architecture):
    model = small_baseline(architecture, num_layers=3)
    source, target = random_ids(3, 9, padding=5), random_ids(3, 6)
    alone = torch.cat([model(row[row != 0][None], words[None]) for row, words in zip(source, target, strict=True)])
    assert max_difference(model(source, target), alone) <= 1e-5
    memory, cache, pieces = model.encode(source), None, []
    for token in target.split(1, dim=1):
        logits, cache = model.step(token, memory, cache)
        pieces.append(logits)
    assert max_difference(torch.cat(pieces, dim=1), alone) <= 1e-5


@every_model
@few
@given(order=st.permutations(range(4)))
def test_batch_order_changes_nothing(architecture, order):
    model = small_baseline(architecture)
    source, target = random_ids(4, 7, padding=3), random_ids(4, 5, padding=2)
    assert max_difference(model(source, target)[order], model(source[order], target[order])) <= 1e-5


@every_model
@few
@given(cuts=st.lists(st.integers(1, 9), max_size=4))
def test_cached_decoding_equals_uncached(architecture, cuts):
    """In pieces of any size: token by token, or a forced prefix first."""
    model = small_baseline(architecture)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 10)
    memory = model.encode(source)
    pieces, cache = [], None
    for start, end in itertools.pairwise(sorted({0, *cuts, 10})):
        logits, cache = model.step(target[:, start:end], memory, cache)
        pieces.append(logits)
        assert (cache.length, cache.rows) == (end, 3)
    assert max_difference(torch.cat(pieces, dim=1), model(source, target)) <= 1e-5


@every_model
@pytest.mark.parametrize(
    "changes", [{"tie_embeddings": False, "output_bias": True}, {"bidirectional": False, "kernel": 5}]
)
def test_token_by_token_equals_all_at_once(architecture, changes):
    model = small_baseline(architecture, num_layers=3, **changes)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 10)
    memory, cache, pieces = model.encode(source), None, []
    for token in target.split(1, dim=1):
        logits, cache = model.step(token, memory, cache)
        pieces.append(logits)
    assert max_difference(torch.cat(pieces, dim=1), model(source, target)) <= 1e-5


@every_model
@few
@given(rows=st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_selecting_rows_of_the_cache_equals_selecting_sentences(architecture, rows):
    model = small_baseline(architecture)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 6)
    rows = torch.tensor(rows)
    memory = model.encode(source)
    _, cache = model.step(target[:, :4], memory)
    logits, _ = model.step(target[rows, 4:], memory, cache.select(rows))
    assert max_difference(logits, model(source[rows], target[rows])[:, 4:]) <= 1e-5
    assert max_difference(model.decode(target[rows], memory.select(rows)), model.decode(target, memory)[rows]) <= 1e-5


@every_model
@torch.inference_mode()
@pytest.mark.parametrize("rows", [[[5, 4], [1, 1]], [[3, 2]], [[0, 1], [3, 3], [4, 5]]])
def test_translations_of_one_sentence_share_its_memory(architecture, rows):
    """Six translations, two of each sentence: rows may then change places, and whole sentences may go."""
    model = small_baseline(architecture)
    source, target = random_ids(3, 8, padding=3), random_ids(3, 4)
    memory, six = model.encode(source), torch.tensor([0, 0, 1, 1, 2, 2])
    cache = model.step(target, memory)[1].select(six.view(3, 2))
    assert (cache.rows, cache.memory_mask.size(0)) == (6, 3)
    more = random_ids(6, 2)
    logits, cache = model.step(more, memory, cache)
    written = torch.cat([target[six], more], dim=1)
    assert max_difference(logits, model(source[six], written)[:, 4:]) <= 1e-5
    rows = torch.tensor(rows)
    chosen = cache.reorder(rows.flatten()) if rows.numel() == 6 else cache.select(rows)
    last, flat = random_ids(rows.numel(), 1), rows.flatten()
    logits, _ = model.step(last, memory, chosen)
    assert max_difference(logits, model(source[six][flat], torch.cat([written[flat], last], 1))[:, 6:]) <= 1e-5


@every_model
def test_stepping_leaves_the_old_cache_as_it_was(architecture):
    model = small_baseline(architecture)
    memory, target = model.encode(random_ids(2, 5)), random_ids(2, 4)
    _, cache = model.step(target[:, :2], memory)
    kept = [state.clone() for state in cache.states]
    once, _ = model.step(target[:, 2:], memory, cache)
    again, _ = model.step(target[:, 2:], memory, cache)
    assert cache.length == 2
    assert all(torch.equal(state, before) for state, before in zip(cache.states, kept, strict=True))
    assert torch.equal(once, again)


@pytest.mark.parametrize("architecture", ATTENTIVE)
@few
@given(source_length=lengths, target_length=lengths, padding=st.integers(0, 5))
def test_weights_sum_to_one_over_real_tokens(architecture, source_length, target_length, padding):
    model = small_baseline(architecture)
    source = random_ids(3, source_length, min(padding, source_length - 1))
    with record_attention(model) as records:
        model(source, random_ids(3, target_length))
    assert len(records) == (2 if architecture == "convs2s" else 1)
    for record in records:
        assert record.weights.shape == (3, 1, target_length, source_length)
        torch.testing.assert_close(record.weights.sum(-1), torch.ones(3, 1, target_length))
        real = padding_mask(source).expand_as(record.weights)
        assert not record.weights[~real].any()
        assert (record.weights[real] > 0).all()
