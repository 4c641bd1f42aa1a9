"""Mask-predict: what is hidden, how a draft is kept and rewritten, lengths, passes, and what the experiment keeps."""

import itertools
import json
from dataclasses import replace

import pytest
import torch
from support import VOCAB, max_difference, random_ids, randomise
from torch import Tensor

from tinytransformer import TransformerConfig
from tinytransformer.experiments import refinement as experiment
from tinytransformer.experiments.runs import said
from tinytransformer.inspection import practice_plots
from tinytransformer.resources import data_folder
from tinytransformer.text.batching import END, PAD, START, collate, pad
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation import refinement
from tinytransformer.translation.greedy import Hypothesis
from tinytransformer.translation.refinement import (
    FARTHEST,
    RefiningTransformer,
    blanks,
    drafts,
    left,
    lowest,
    refine,
    refinement_loss,
)

SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 24, "num_layers": 2, "max_length": 40, "dropout": 0.0}


@pytest.fixture
def model() -> RefiningTransformer:
    return randomise(RefiningTransformer(TransformerConfig(VOCAB, **SIZES))).eval()


def sources(lengths: list[int]) -> Tensor:
    """Source rows of these lengths, each with its end token, padded."""
    return pad([[*torch.randint(4, VOCAB, (length,)).tolist(), END] for length in lengths])


# What the decoder sees


def test_every_place_of_the_target_sees_every_other(model):
    memory, ids = model.encode(sources([5])), random_ids(1, 6)
    states = model.decode(ids, memory)
    for place in (0, 5):
        changed = ids.clone()
        changed[0, place] = 4 if ids[0, place] != 4 else 5
        assert (model.decode(changed, memory) - states).abs().amax(-1).min() > 1e-4


def test_padding_of_source_and_target_changes_nothing(model):
    source, ids = sources([5]), random_ids(1, 6)
    alone = model.decode(ids, model.encode(source))
    wider = torch.cat([ids, torch.full((1, 3), PAD)], 1), torch.cat([source, torch.full((1, 4), PAD)], 1)
    memory = model.encode(wider[1])
    assert max_difference(model.decode(wider[0], memory)[:, :6], alone) < 1e-5
    assert max_difference(model.length_logits(memory), model.length_logits(model.encode(source))) < 1e-5


# What is hidden


def test_the_lowest_are_picked_among_real_places_only():
    values = torch.tensor([[0.3, 0.1, 0.2, -9.0], [0.4, 0.3, 0.2, 0.1]])
    found = lowest(values, torch.tensor([3, 4]), torch.tensor([2, 1]))
    assert found.tolist() == [[False, True, True, False], [False, False, False, True]]
    assert not lowest(values, torch.tensor([0, 0]), torch.tensor([1, 1])).any(), "an empty target has nothing to hide"


def test_in_training_any_number_from_one_to_all_is_hidden_anywhere():
    lengths = torch.tensor([1, 3, 5]).repeat(400)
    hidden = blanks(lengths, 6, torch.Generator().manual_seed(0))
    assert not (hidden & (torch.arange(6) >= lengths[:, None])).any(), "padding is never hidden"
    for length in (1, 3, 5):
        own = hidden[lengths == length]
        assert set(own.sum(-1).tolist()) == set(range(1, length + 1))
        assert own[:, :length].any(0).all()


def test_the_loss_is_that_of_the_hidden_tokens_and_of_the_length(model, monkeypatch):
    """Against a loop over tokens; the hidden ones are chosen here."""
    pairs = [([5, 6, 7], [8, 9]), ([5, 6], [10, 11, 12, 13])]
    hidden = torch.tensor([[True, False, False, False], [False, True, False, True]])
    monkeypatch.setattr(refinement, "blanks", lambda lengths, width: hidden)
    batch = collate(pairs)
    loss, count = refinement_loss(model, batch)
    assert count == batch.num_targets == 8
    tokens = lengths = 0.0
    for row, (source, target) in enumerate(pairs):
        ids = torch.tensor([[*source, END]])
        shown = [model.blank_id if hidden[row, place] else token for place, token in enumerate(target)]
        memory = model.encode(ids)
        scores = model.logits(model.decode(torch.tensor([shown]), memory))[0].log_softmax(-1)
        tokens -= sum(scores[place, token] for place, token in enumerate(target) if hidden[row, place])
        difference = len(target) - len(source)
        lengths -= model.length_logits(memory).log_softmax(-1)[0, difference + FARTHEST]
    assert loss.item() == pytest.approx((tokens * 8 / 3 + lengths).item(), rel=1e-5)


def test_training_teaches_words_and_length():
    torch.manual_seed(0)
    model = RefiningTransformer(TransformerConfig(VOCAB, **{**SIZES, "norm": "pre"}))
    pairs = [([5, 6, 7], [8, 9, 10, 11]), ([12, 13], [14])]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(250):
        optimiser.zero_grad()
        refinement_loss(model, collate(pairs))[0].backward()
        optimiser.step()
    found = refine(model.eval(), pad([[*source, END] for source, _ in pairs]), iterations=2)
    assert [list(one.ids) for one in found] == [target for _, target in pairs]


# Drafts


def test_so_many_tokens_become_blanks_again():
    assert [left(12, 4, done) for done in (1, 2, 3, 4)] == [9, 6, 3, 0]
    assert [left(1, 10, done) for done in (1, 9, 10)] == [0, 0, 0]
    assert left(torch.tensor([3, 12]), 4, 1).tolist() == [2, 9]


def test_a_draft_keeps_what_was_sure_and_rewrites_the_rest(model):
    """The whole bookkeeping against a slow one, a sentence at a time, without a cache."""
    lengths, iterations = [7, 3, 5], 4
    source = sources([5, 2, 6])
    found = list(drafts(model, model.encode(source), torch.tensor(lengths), iterations))
    for row, length in enumerate(lengths):
        memory = model.encode(source[row : row + 1])
        ids, sure, hidden = [model.blank_id] * length, [0.0] * length, set(range(length))
        for done, draft in enumerate(found, start=1):
            assert draft.written[row].nonzero()[:, 0].tolist() == sorted(hidden)
            scores = model.logits(model.decode(torch.tensor([ids]), memory))[0]
            scores[:, [PAD, START, END]] = float("-inf")
            best = scores.log_softmax(-1).max(-1)
            for place in hidden:
                ids[place], sure[place] = best.indices[place].item(), best.values[place].item()
            assert draft.ids[row].tolist() == [*ids, *[PAD] * (7 - length)]
            assert draft.log_probabilities[row, :length].tolist() == pytest.approx(sure, abs=1e-4)
            hidden = set(
                sorted(range(length), key=lambda place: sure[place])[: length * (iterations - done) // iterations]
            )
            ids = [model.blank_id if place in hidden else token for place, token in enumerate(ids)]


@pytest.mark.parametrize(
    ("lengths", "iterations", "passes"), [([6], 1, 1), ([6], 4, 4), ([6, 2], 6, 6), ([1, 1], 10, 1)]
)
def test_no_more_passes_than_asked_for_or_needed(model, lengths, iterations, passes):
    found = list(drafts(model, model.encode(sources([4] * len(lengths))), torch.tensor(lengths), iterations))
    assert len(found) == passes
    never = {PAD, START, END}
    for length, row in zip(lengths, found[-1].ids.tolist(), strict=True):
        assert not never & set(row[:length]), "the last draft has no blank"


def test_with_as_many_passes_as_tokens_one_token_fewer_is_rewritten_each_time(model):
    found = list(drafts(model, model.encode(sources([4])), torch.tensor([5]), 5))
    assert [int(draft.written.sum()) for draft in found] == [5, 4, 3, 2, 1]
    for before, after in itertools.pairwise(found):
        assert torch.equal(before.ids[~after.written], after.ids[~after.written])


# Translating


def test_a_sentence_is_translated_the_same_alone_and_among_others(model):
    source = sources([3, 8, 5])
    together = refine(model, source, iterations=3, candidates=2)
    for row, found in enumerate(together):
        (alone,) = refine(model, source[row : row + 1, : int((source[row] != PAD).sum())], iterations=3, candidates=2)
        assert alone.ids == found.ids
        assert alone.log_probability == pytest.approx(found.log_probability, abs=1e-4)


def test_of_several_lengths_the_surest_translation_is_kept_and_the_length_counts(model):
    """Once the tokens decide, once the length: it is made so sure of one that no other has a chance."""
    source = sources([6, 4])
    memory = model.encode(source)
    for surest in (0.0, 100.0):
        with torch.no_grad():
            model.length.weight.zero_()
            model.length.bias.fill_(-200.0)
            model.length.bias[[FARTHEST - 1, FARTHEST, FARTHEST + 2]] = torch.tensor([0.3, 0.2, 0.1 + surest])
        prior = model.length.bias.log_softmax(-1)
        for row, found in enumerate(refine(model, source, iterations=2, candidates=3)):
            totals = {}
            for difference in (-1, 0, 2):
                length = (6, 4)[row] + difference
                *_, last = drafts(model, memory.select(torch.tensor([row])), torch.tensor([length]), 2)
                total = last.log_probabilities.sum() + prior[FARTHEST + difference]
                totals[tuple(last.ids[0].tolist())] = total.item()
            best = max(totals, key=lambda ids: totals[ids] / len(ids))
            assert found.ids == best
            assert found.log_probability == pytest.approx(totals[best], abs=1e-4)
            assert found.score == pytest.approx(totals[best] / len(best), abs=1e-4)
            assert not surest or len(found.ids) == (6, 4)[row] + 2


def test_lengths_are_the_sources_and_what_was_learned_and_never_nothing(model):
    with torch.no_grad():
        model.length.weight.zero_()
        model.length.bias.zero_()
        model.length.bias[FARTHEST + 2] = 1.0
    assert model.likely_lengths(model.encode(sources([3, 7]))).tolist() == [[5], [9]]
    with torch.no_grad():
        model.length.bias[0] = 2.0
    assert model.likely_lengths(model.encode(sources([3, 7]))).tolist() == [[1], [1]]


def test_bad_input_is_refused(model):
    source = sources([3])
    with pytest.raises(ValueError, match="iterations=0 must be at least 1 pass"):
        refine(model, source, iterations=0)
    with pytest.raises(ValueError, match=f"candidates=0 lengths cannot be tried: choose 1 to {2 * FARTHEST + 1}"):
        refine(model, source, candidates=0)
    with pytest.raises(ValueError, match=r"agreement=1.0 is for sequential models: leave it at 0"):
        refinement_loss(model, collate([([5], [6])]), agreement=1.0)


# The experiment


def test_passes_of_a_mean_sentence():
    hypotheses = [Hypothesis((5,) * length, 0.0, 0.0) for length in (1, 4, 9)]
    assert experiment.passes("sequential, greedy", hypotheses) == (2 + 5 + 10) / 3
    assert experiment.passes("refining, 4", hypotheses) == (1 + 4 + 4) / 3
    assert experiment.passes("refining, 10, three lengths", hypotheses) == (1 + 8 + 9) / 3


def test_sentences_come_back_in_their_order():
    rows = [[5], [5, 6, 7], [5, 6]]
    seen = []

    def decode(source: Tensor) -> list[Hypothesis]:
        seen.append(source.shape)
        return [Hypothesis(tuple(row[row > END].tolist()), 0.0, 0.0) for row in source]

    assert [list(one.ids) for one in experiment.translated(decode, rows, together=2)] == rows
    assert seen == [(2, 4), (1, 2)]


def test_a_run_trains_measures_and_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    for name, value in {"ITERATIONS": (1, 2), "TIMED": 2, "ROUNDS": 1, "SPLITS": ("test",)}.items():
        monkeypatch.setattr(experiment, name, value)
    tiny = replace(
        RECIPES["microworld"], pairs=200, vocab_size=300, d_model=16, num_heads=2, d_ff=16, num_layers=1, steps=3,
        warmup=1, save_every=2, max_length=64,
    )  # fmt: skip
    path, folder = tmp_path / "refinement.json", tmp_path / "run"
    first = experiment.run(path, folder, tiny, sentences=4)
    assert json.loads(path.read_text(encoding="utf-8")) == first
    ways = [row["way"] for row in first["rows"]]
    assert ways[:4] == ["sequential, greedy", "sequential, beam 4", "refining, 1", "refining, 2"]
    assert len(first["speed"]) == 2 * len(ways)
    assert first["rows"][0]["bleu"] > 80 > first["rows"][2]["bleu"]

    without = {**first, "rows": first["rows"][:-1]}
    path.write_text(json.dumps(without), encoding="utf-8")
    monkeypatch.setattr(experiment, "train", lambda *_, **__: pytest.fail("it was trained already"))
    monkeypatch.setattr(experiment, "speeds", lambda *_: pytest.fail("speeds were measured already"))
    capsys.readouterr()
    assert experiment.run(path, folder, tiny, sentences=4) == first
    assert capsys.readouterr().out.count("\n") == 1


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "refinement.json").read_text(encoding="utf-8"))


def test_the_stored_results_are_of_this_experiment(stored):
    assert (stored["command"], stored["note"]) == (experiment.COMMAND, experiment.NOTE)
    assert stored["recipe"] == json.loads(json.dumps(said(RECIPES["microworld"])))
    ways = set(experiment.ways(None, None))
    for split in experiment.SPLITS:
        rows = {row["way"]: row for row in stored["rows"] if row["split"] == split}
        assert set(rows) == ways
        assert rows["refining, 1"]["bleu"] < rows["refining, 10"]["bleu"] < rows["sequential, greedy"]["bleu"]
        assert rows["refining, 10"]["passes"] < rows["sequential, greedy"]["passes"]
    assert {(row["way"], row["together"]) for row in stored["speed"]} == set(itertools.product(ways, (1, 64)))
    for example in stored["examples"]:
        assert example["pieces"][0] != example["pieces"][-1]
        assert len(example["written"][0]) == len(example["pieces"][0])


def test_the_trade_off_is_drawn_beside_sequential_decoding(stored):
    left, right = practice_plots.refinement_tradeoff(stored).axes
    rows = {row["way"]: row for row in stored["rows"] if row["split"] == "test"}
    refining = [rows[f"refining, {number}"] for number in experiment.ITERATIONS]
    curve = left.lines[0]
    assert list(curve.get_xdata()) == [row["passes"] for row in refining]
    assert list(curve.get_ydata()) == [row["bleu"] for row in refining]
    speeds = {(row["way"], row["together"]): row["sentences_per_second"] for row in stored["speed"]}
    assert list(right.lines[0].get_xdata()) == [speeds[row["way"], 1] for row in refining]
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels[:2] == ["refining", "refining, three lengths"]
    assert labels[2] == f"sequential, greedy: {rows['sequential, greedy']['passes']:.0f} passes"
    with pytest.raises(ValueError, match="split 'train' is not in these results: choose test or test_long"):
        practice_plots.refinement_tradeoff(stored, "train")
