"""What lesson 08 builds is what the package and sacreBLEU have: its definitions are lifted out and compared."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from support_notebooks import lifted

from tinytransformer import Transformer, TransformerConfig, attention, causal_mask
from tinytransformer.training.checkpoints import average
from tinytransformer.translation import beam_search as package
from tinytransformer.translation.greedy import greedy

BUILT = lifted("08_decoding")
CONFIG = TransformerConfig(vocab_size=9, d_model=8, num_heads=2, num_layers=1, d_ff=8, dropout=0.0, max_length=24)


def language(seed: int):
    """A random model that is far from sure, one source sentence, and the function that the lesson's searches call."""
    torch.manual_seed(seed)
    model = Transformer(CONFIG).eval()
    source = torch.randint(3, 9, (1, 4))

    @torch.inference_mode()
    def next_log_probabilities(ids):
        found = model(source, torch.tensor([ids]))[0, -1].log_softmax(-1)
        found[[CONFIG.pad_id, CONFIG.start_id]] = -math.inf
        return found

    return model, source, next_log_probabilities


def assert_searches_are_the_packages(built: dict, seed: int, beam: int, alpha: float, extra: int = 4) -> None:
    model, source, ask = language(seed)
    limit = source.size(1) + extra
    ids, total = built["greedy_decode"](ask, CONFIG.start_id, CONFIG.end_id, limit)
    (theirs,) = greedy(model, source, extra)
    assert ids == list(theirs.ids)
    assert total == pytest.approx(theirs.log_probability, abs=1e-3)
    ours = built["beam_decode"](ask, CONFIG.start_id, CONFIG.end_id, limit, beam, alpha)
    (found,) = package.beam_search(model, source, beam, alpha, extra)
    assert [one[2] for one in ours] == pytest.approx([one.score for one in found], abs=1e-3)
    assert [one[1] for one in ours] == pytest.approx([one.log_probability for one in found], abs=1e-3)
    assert ours[0][0] == list(found[0].ids)


def assert_bleu_is_sacrebleus(built: dict, hypotheses: list[list[str]], references: list[list[str]]) -> None:
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    theirs = metric.corpus_score([" ".join(one) for one in hypotheses], [[" ".join(one) for one in references]])
    assert built["bleu"](hypotheses, references) == pytest.approx(theirs.score, abs=1e-4)


def assert_cache_is_causal_attention(built: dict, batch: int, length: int, size: int) -> None:
    q, k, v = torch.randn(3, batch, length, size, generator=torch.Generator().manual_seed(length))
    past, outputs = None, []
    for t in range(length):
        output, past = built["cached_attention"](*(one[:, t : t + 1] for one in (q, k, v)), past)
        outputs.append(output)
    torch.testing.assert_close(
        torch.cat(outputs, 1), attention(q[:, None], k[:, None], v[:, None], causal_mask(length))[:, 0]
    )


@given(seed=st.integers(0, 10_000), beam=st.integers(1, 4), alpha=st.sampled_from([0.0, 0.6, 1.5]))
def test_searches_of_lesson_08(seed, beam, alpha):
    assert_searches_are_the_packages(BUILT, seed, beam, alpha)


@given(length=st.integers(1, 200), alpha=st.floats(0, 4))
def test_length_penalty_of_lesson_08(length, alpha):
    assert BUILT["length_penalty"](length, alpha) == pytest.approx(package.length_penalty(length, alpha))


sentence = st.lists(st.sampled_from("abc"), min_size=1, max_size=12)


@given(pairs=st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5))
def test_bleu_of_lesson_08(pairs):
    hypotheses, references = (list(side) for side in zip(*pairs, strict=True))
    assert_bleu_is_sacrebleus(BUILT, hypotheses, references)


@given(batch=st.integers(1, 3), length=st.integers(1, 8), size=st.integers(1, 9))
def test_cache_of_lesson_08(batch, length, size):
    assert_cache_is_causal_attention(BUILT, batch, length, size)


@given(count=st.integers(1, 6))
def test_average_of_lesson_08(count):
    models = [{"w": torch.randn(3, 2), "b": torch.randn(2)} for _ in range(count)]
    torch.testing.assert_close(BUILT["average_weights"](models), average(models))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("argmax()", "argmin()"),
        ("len(ids) > limit", "len(ids) >= limit"),
        ("return ids[1:], total", "return ids, total"),
        ("total / length_penalty", "total * length_penalty"),
        ("2 * beam", "1"),
        ("candidates[:beam]", "candidates[:1]"),
        ("len(ids) - 1, alpha", "len(ids) - 2, alpha"),
        ("total + step", "step"),
    ],
)
def test_a_change_in_the_searches_is_noticed(old, new):
    changed = lifted("08_decoding", lambda source: source.replace(old, new))

    def try_some():
        for seed in range(12):
            assert_searches_are_the_packages(changed, seed, 3, 1.5)

    with pytest.raises((AssertionError, IndexError)):
        try_some()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ours & ngrams", "ours | ngrams"),
        ("1 - theirs / ours", "1 - ours / theirs"),
        ("/ 4)", "/ 3)"),
        ("(1, 5)", "(1, 4)"),
    ],
)
def test_a_change_in_bleu_is_noticed(old, new):
    changed = lifted("08_decoding", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_bleu_is_sacrebleus(changed, [list("abcabcaa"), list("bbb")], [list("abcabcabc"), list("bbcab")])


@pytest.mark.parametrize(("old", "new"), [("[past[0], key]", "[key, past[0]]"), ("math.sqrt(query.size(-1))", "1")])
def test_a_change_in_the_cache_is_noticed(old, new):
    changed = lifted("08_decoding", lambda source: source.replace(old, new))
    with pytest.raises(AssertionError):
        assert_cache_is_causal_attention(changed, 2, 5, 4)
