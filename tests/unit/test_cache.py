"""The cache: several translations of one sentence share the encoder's output, and selecting keeps each with its own."""

import pytest
import torch
from support import VOCAB, max_difference, random_ids, small_model

from tinytransformer.translation.beam_search import extend, is_done, retire, start
from tinytransformer.translation.greedy import only_allowed


@pytest.fixture
def decoding():
    """A model, three sources of different lengths, their targets, and the cache after four tokens."""
    model = small_model()
    source, target = random_ids(3, 8, padding=3), random_ids(3, 4)
    memory = model.encode(source)
    return model, source, target, memory, model.step(target, memory)[1]


@torch.inference_mode()
@pytest.mark.parametrize("rows", [[[0, 0], [1, 1], [2, 2]], [[2, 2, 2], [0, 0, 0]], [[1, 1]]])
def test_translations_of_one_sentence_share_its_memory(decoding, rows):
    model, source, target, memory, cache = decoding
    shared = cache.select(torch.tensor(rows))
    assert shared.rows == sum(map(len, rows))
    assert {layer.memory.key.size(0) for layer in shared.layers} == {shared.memory_mask.size(0)} == {len(rows)}
    flat = torch.tensor(rows).flatten()
    more = random_ids(len(flat), 2)  # every translation goes on in another way
    logits, _ = model.step(more, memory, shared)
    assert max_difference(logits, model(source[flat], torch.cat([target[flat], more], 1))[:, 4:]) <= 1e-5


@torch.inference_mode()
@pytest.mark.parametrize("rows", [[[5, 4], [1, 1]], [[3, 2]], [5, 0, 0, 2]])
def test_selecting_from_shared_translations(decoding, rows):
    """Six translations, two of each sentence: rows may then change places, and whole sentences may go."""
    model, source, target, memory, cache = decoding
    six = torch.tensor([0, 0, 1, 1, 2, 2])
    fifth, last = random_ids(6, 1), random_ids(torch.tensor(rows).numel(), 1)
    _, cache = model.step(fifth, memory, cache.select(six.view(3, 2)))
    rows = torch.tensor(rows)
    logits, _ = model.step(last, memory, cache.select(rows))
    rows = rows.flatten()
    written = torch.cat([target[six][rows], fifth[rows], last], 1)
    assert max_difference(logits, model(source[six][rows], written)[:, 5:]) <= 1e-5


def test_a_wrong_number_of_rows_is_named(decoding):
    model, _, _, memory, cache = decoding
    with pytest.raises(ValueError, match="target has 3 rows but the source has 6"):
        model.step(random_ids(3, 1), memory, cache.select(torch.tensor([[0, 0], [1, 1], [2, 2]])))


@torch.inference_mode()
def test_sentences_that_are_done_leave_the_cache():
    model = small_model()
    memory, beams = start(model, random_ids(3, 6), beam=2, extra=5)
    assert beams.tokens.shape == (3, 1, 1), "the first step has one beginning per sentence"
    for _ in range(2):
        beams, _ = extend(model, memory, beams)
    assert beams.cache.rows == 6
    assert beams.cache.memory_mask.size(0) == 3
    beams = retire(beams, torch.tensor([False, True, False]))
    assert beams.sentences.tolist() == [0, 2]
    beams, _ = extend(model, memory, beams)
    assert beams.cache.rows == 4
    assert beams.cache.memory_mask.size(0) == 2
    assert not is_done(beams).any()


def test_only_allowed_tokens_keep_their_probability():
    model = small_model()
    given = torch.randn(2, VOCAB).log_softmax(-1)
    before = given.clone()
    found = only_allowed(model, given, torch.tensor([False, True]))
    assert (found[0].isinf().nonzero()[:, 0]).tolist() == [0, 1], "padding and start never come"
    assert torch.equal(found[0, 2:], before[0, 2:])
    assert found[1].isfinite().nonzero()[:, 0].tolist() == [2], "a full translation can only end"
    assert found[1, 2] == before[1, 2]
