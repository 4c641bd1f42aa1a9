"""Decoding: beam 1 is greedy, a wide beam is brute force, and scores are the model's own."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import COMBINATIONS, random_ids, small_model

from tinytransformer.translation.beam_search import (
    _best,
    beam_search,
    extend,
    is_done,
    length_penalty,
    retire,
    start,
)
from tinytransformer.translation.greedy import greedy, sample


def tiny(**changes):
    """A model over five tokens: padding, start, end and two words; small enough to try everything."""
    return small_model(**{"vocab_size": 5, "num_layers": 1, "max_length": 12, **changes})


def rescored(model, source, ids) -> float:
    """The log-probability of a translation by one forward pass over all of it."""
    target = torch.tensor([[model.config.start_id, *ids]])
    wanted = torch.tensor([*ids, model.config.end_id])
    with torch.no_grad():
        log_probabilities = model(source[None], target)[0].log_softmax(-1)
    return log_probabilities.gather(-1, wanted[:, None]).sum().item()


@pytest.mark.parametrize(("norm", "positions"), COMBINATIONS)
def test_beam_one_is_greedy(norm, positions):
    model, source = small_model(norm=norm, positions=positions), random_ids(5, 7, padding=3)
    for one, (other, *more) in zip(
        greedy(model, source, 10), beam_search(model, source, beam=1, extra=10), strict=True
    ):
        assert one.ids == other.ids
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        assert not more


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_is_brute_force(alpha, seed):
    model = tiny()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    source, extra, longest = torch.tensor([[3, 4]]), 2, 4
    everything = [ids for n in range(longest + 1) for ids in itertools.product((3, 4), repeat=n)]
    scored = [(rescored(model, source[0], ids), ids) for ids in everything]
    best = sorted(scored, key=lambda pair: -pair[0] / length_penalty(len(pair[1]) + 1, alpha))
    found = beam_search(model, source, beam=2 * len(everything), alpha=alpha, extra=extra)[0]
    assert len(found) == len(everything)
    assert [hypothesis.ids for hypothesis in found][:5] == [ids for _, ids in best][:5]
    for hypothesis, (log_probability, _) in zip(found[:5], best, strict=False):
        assert hypothesis.log_probability == pytest.approx(log_probability, abs=1e-4)


@given(beam=st.integers(1, 6), alpha=st.sampled_from([0.0, 0.6, 2.0]))
def test_scores_are_the_models_own_log_probabilities(beam, alpha):
    model, source = small_model(), random_ids(3, 7, padding=3)
    for row, hypotheses in zip(source, beam_search(model, source, beam, alpha, extra=4), strict=True):
        assert hypotheses
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            expected = rescored(model, row, hypothesis.ids)
            assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
            assert hypothesis.score == pytest.approx(
                expected / length_penalty(len(hypothesis.ids) + 1, alpha), abs=1e-4
            )


@given(beam=st.integers(1, 4), sentences=st.sampled_from([4, 21]))  # many sentences leave the batch in groups
def test_sentences_do_not_disturb_each_other(beam, sentences):
    model, source = small_model(), random_ids(sentences, 7, padding=3)
    together = beam_search(model, source, beam, extra=6)
    for row, expected in zip(source, together, strict=True):
        alone = beam_search(model, row[row != 0][None], beam, extra=6)[0]
        assert [h.ids for h in alone] == [h.ids for h in expected]


@torch.inference_mode()
def test_many_sentences_leave_in_groups_and_who_stays_though_done_finds_nothing_more():
    model = small_model(output_bias=True)
    model.embedding.output_bias[2] = 5.0  # something ends at every step
    memory, beams = start(model, random_ids(20, 6), beam=3, extra=5)
    beams, _ = extend(model, memory, beams)
    done = torch.arange(20) < 3
    assert len(retire(beams, done).sentences) == 20, "17 go on: more than two groups"
    done[4:13] = True
    assert torch.equal(retire(beams, done).sentences, beams.sentences[~done]), "8 go on: one group"
    done[:2] = False
    some = retire(beams, done)
    assert len(some.sentences) == 16, "10 go on: more than one group"
    assert set(beams.sentences[~done].tolist()) < set(some.sentences.tolist())
    for _ in range(3):
        assert is_done(some)[done[some.sentences]].all()
        some, ends = extend(model, memory, some)
        assert ends
        assert not any(done[end.sentence] for end in ends)


def test_a_wider_beam_finds_no_worse_translations_without_penalty():
    model, source = small_model(), random_ids(6, 7)
    best = [max(h.score for h in found) for found in beam_search(model, source, beam=1, alpha=0.0, extra=3)]
    wider = [max(h.score for h in found) for found in beam_search(model, source, beam=30, alpha=0.0, extra=3)]
    assert all(two >= one - 1e-4 for one, two in zip(best, wider, strict=True))


@pytest.mark.parametrize("decode", [greedy, lambda *a: [found[0] for found in beam_search(a[0], a[1], extra=a[2])]])
def test_no_translation_is_longer_than_allowed_or_holds_special_tokens(decode):
    model = small_model(max_length=10)
    with torch.no_grad():
        model.embedding.tokens[2] = -10 * model.embedding.tokens.mean(0)  # the end is unlikely
    source = random_ids(5, 4, padding=2)
    for row, hypothesis in zip(source, decode(model, source, 3), strict=True):
        assert len(hypothesis.ids) <= min(int((row != 0).sum()) + 3, 9)
        assert not {0, 1, 2} & set(hypothesis.ids)
    assert max(len(h.ids) for h in decode(model, source, 50)) <= 9, "max_length counts, too"
    ended = torch.cat([source[:, :2], torch.full_like(source[:, :1], 2)], dim=1)
    assert max(len(h.ids) for h in decode(model, ended, 3)) == 5, "the end of the source is no word"


@torch.inference_mode()
def test_what_ends_leaves_its_place_to_others():
    """The end is the likeliest token, and still two beginnings go on."""
    model = tiny(output_bias=True)
    model.embedding.output_bias[2] = 20.0
    memory, beams = start(model, torch.tensor([[3, 4]]), beam=2, extra=5)
    for _ in range(3):
        beams, ends = extend(model, memory, beams)
        assert ends
        assert beams.scores.isfinite().all()


def test_length_penalty():
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(30, 0.0) == 1.0


def test_a_strong_penalty_prefers_longer_translations():
    model, source = tiny(), torch.tensor([[3, 4, 3]])
    lengths = [len(beam_search(model, source, beam=40, alpha=alpha, extra=3)[0][0].ids) for alpha in (0.0, 5.0)]
    assert lengths[0] < lengths[1]


def test_sampling_follows_the_probabilities_and_its_generator():
    model, source = tiny(), torch.tensor([[3, 4]]).repeat(2000, 1)
    drawn = sample(model, source, torch.Generator().manual_seed(1), extra=2)
    again = sample(model, source, torch.Generator().manual_seed(1), extra=2)
    assert [h.ids for h in drawn] == [h.ids for h in again]
    share = sum(h.ids == () for h in drawn) / 2000
    with torch.no_grad():
        first = model(source[:1], torch.tensor([[1]]))[0, 0].softmax(-1)
    expected = (first[2] / first[2:].sum()).item()  # padding and start are never drawn
    assert share == pytest.approx(expected, abs=0.04)


def test_sampling_from_the_top_one_is_greedy():
    model, source = small_model(), random_ids(4, 6)
    drawn = sample(model, source, torch.Generator().manual_seed(1), top=1, extra=5)
    assert [h.ids for h in drawn] == [h.ids for h in greedy(model, source, 5)]


def test_bad_settings():
    model, source = small_model(), random_ids(2, 4)
    with pytest.raises(ValueError, match="beam=0 must be at least 1"):
        beam_search(model, source, beam=0)
    with pytest.raises(ValueError, match="temperature=0 must be above 0"):
        sample(model, source, torch.Generator(), temperature=0)


@given(st.data())
def test_the_best_candidates_are_found_block_by_block(data):
    size, beam, number = data.draw(st.integers(1, 700)), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 10**6)))
    scores, steps = (3 * torch.randn(*shape, generator=generator) for shape in ((2, beam), (2, beam, size)))
    if beam > 1:
        scores[1, -1] = float("-inf")  # an empty place
    expected = (scores[..., None] + steps).flatten(1).topk(min(number, beam * size))
    found, origins, tokens = _best(scores, steps, number, block=data.draw(st.sampled_from([1, 8, 64])))
    assert torch.equal(found, expected.values)
    real = found.isfinite()  # which of the impossible ones come last is of no importance
    assert torch.equal((origins * size + tokens)[real], expected.indices[real])
