"""What must hold for every decoder-only and encoder-only model, whatever its weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import COMBINATIONS, VOCAB, max_difference, random_ids, randomise

from tinytransformer import TransformerConfig, attention, causal_mask, padding_mask, window_mask
from tinytransformer.model.blockwise import blockwise_attention, windowed_attention
from tinytransformer.model.families import DecoderOnly, EncoderOnly, LanguageModel

every_model = pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
every_family = pytest.mark.parametrize("kind", [DecoderOnly, EncoderOnly])


def family(kind: type[LanguageModel], **changes) -> LanguageModel:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 4, "d_ff": 24, "num_layers": 2, "max_length": 40}
    return randomise(kind(TransformerConfig(VOCAB, **sizes, **changes))).eval()


@every_model
@given(length=st.integers(2, 12), data=st.data())
def test_a_decoder_sees_no_future_and_an_encoder_sees_all(norm, positions, length, data):
    decoder, encoder = (family(kind, norm=norm, positions=positions) for kind in (DecoderOnly, EncoderOnly))
    ids = random_ids(2, length)
    place = data.draw(st.integers(1, length - 1))
    changed = ids.clone()
    changed[:, place:] = (changed[:, place:] - 3 + 7) % (VOCAB - 3) + 3
    before, after = decoder(ids), decoder(changed)
    assert max_difference(before[:, :place], after[:, :place]) <= 1e-5
    assert max_difference(before[:, place:], after[:, place:]) > 1e-3
    assert ((encoder(ids) - encoder(changed)).abs().amax(-1) > 1e-4).all(), "every position has noticed"


@every_family
@every_model
@given(extra=st.integers(1, 8))
def test_padding_changes_nothing(kind, norm, positions, extra):
    model = family(kind, norm=norm, positions=positions)
    ids = random_ids(2, 7)
    assert max_difference(model(ids), model(torch.nn.functional.pad(ids, (0, extra)))[:, :7]) <= 1e-5


@every_family
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_sentences_of_a_batch_do_not_meet(kind, lengths):
    model = family(kind, window=2)
    rows = [random_ids(1, length)[0] for length in lengths]
    together = model(torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))
    for row, found in zip(rows, together, strict=True):
        assert max_difference(model(row[None])[0], found[: len(row)]) <= 1e-5


sizes = st.integers(1, 20)


@given(
    queries=sizes, keys=sizes, block=st.integers(1, 25), d_k=st.integers(1, 8), d_v=st.integers(1, 8), data=st.data()
)
def test_blockwise_attention_is_attention(queries, keys, block, d_k, d_v, data):
    query, key = 3 * torch.randn(2, 3, queries, d_k), torch.randn(2, 3, keys, d_k)
    value = torch.randn(2, 3, keys, d_v)
    ids = torch.randint(0, 2, (2, keys))
    masks = [None, torch.rand(queries, keys) > 0.5, padding_mask(ids), torch.rand(2, 3, queries, 1) > 0.5]
    masks += [torch.zeros(queries, keys, dtype=torch.bool)]
    masks += [causal_mask(queries)] if queries == keys else []
    mask = data.draw(st.sampled_from(masks))
    found = blockwise_attention(query, key, value, block, mask)
    expected = attention(query, key, value, mask)
    assert found.shape == expected.shape
    assert max_difference(found, expected) <= 1e-5


def test_blockwise_gradients_and_high_scores_are_those_of_attention():
    query, key, value = (torch.randn(1, 2, 13, 4).requires_grad_() for _ in range(3))
    with torch.no_grad():
        query *= 200  # e to the power of such scores is no number; they must be taken relative to the highest
    weights = torch.randn(1, 2, 13, 4)
    mask = causal_mask(13)
    mask[4] = False
    ours, theirs = (
        torch.autograd.grad((out * weights).sum(), (query, key, value))
        for out in (blockwise_attention(query, key, value, 3, mask), attention(query, key, value, mask))
    )
    for one, other in zip(ours, theirs, strict=True):
        assert torch.isfinite(one).all()
        assert max_difference(one, other) <= 1e-3
    with pytest.raises(ValueError, match="block=0 must be at least 1 key"):
        blockwise_attention(query, key, value, 0)


@given(length=st.integers(1, 30), radius=st.integers(0, 35), block=st.one_of(st.none(), st.integers(1, 35)))
def test_windowed_attention_is_attention_with_a_window(length, radius, block):
    query, key, value = (torch.randn(2, 3, length, 5) for _ in range(3))
    found = windowed_attention(query, key, value, radius, block)
    assert max_difference(found, attention(query, key, value, window_mask(length, radius))) <= 1e-5


def test_a_window_needs_a_radius():
    x = torch.randn(1, 4, 5)
    with pytest.raises(ValueError, match="radius=-1 must be 0 or more"):
        windowed_attention(x, x, x, -1)
