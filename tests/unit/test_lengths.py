"""BLEU by length is sacreBLEU's, the interval covers what it must, and a run is done once."""

import json
from dataclasses import replace

import pytest

from tinytransformer.experiments import lengths, runs
from tinytransformer.translation.evaluation import score

REFERENCES = ["the old dog sleeps in the garden .", "a cat sees the bird .", "we read two books .", "it rains ."]
HYPOTHESES = ["the old dog sleeps in a garden .", "the cat sees a bird .", "we read two books .", "it is raining ."]


def counted(hypotheses):
    return [lengths.counts(*pair) for pair in zip(hypotheses, REFERENCES, strict=True)]


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [0, 2], [1], [0, 0, 3]])
def test_bleu_from_counts_is_sacrebleus(rows):
    found = lengths.bleu([counted(HYPOTHESES)[row] for row in rows])
    assert found == pytest.approx(score([HYPOTHESES[row] for row in rows], [REFERENCES[row] for row in rows]).bleu)


def test_the_gap_is_the_difference_of_means_and_lies_in_its_interval():
    good, bad = counted(REFERENCES) * 10, counted(HYPOTHESES) * 10
    found = lengths.gap([good, bad], [bad, bad], draws=200)
    assert found["bleu"] == pytest.approx((lengths.bleu(good) - lengths.bleu(bad)) / 2)
    assert found["low"] <= found["bleu"] <= found["high"]
    assert found["low"] > 0, "one side is right everywhere"
    assert lengths.gap([bad], [bad], draws=50) == {"bleu": 0.0, "low": 0.0, "high": 0.0}


def test_sentences_have_the_lengths_they_are_filed_under():
    found = lengths.examples(5)
    assert [len(chosen) for chosen in found.values()] == [5] * len(lengths.LENGTHS)
    for (shortest, longest), chosen in found.items():
        assert all(shortest <= len(example.source_words) <= longest for example in chosen)


def test_every_length_has_its_place():
    ends = [longest for _, longest in lengths.LENGTHS]
    assert [shortest for shortest, _ in lengths.LENGTHS[1:]] == [end + 1 for end in ends[:-1]]


def test_runs_are_kept_and_summed_up(tmp_path, monkeypatch, capsys):
    small = replace(
        lengths.BASE, pairs=200, vocab_size=200, d_model=8, num_layers=1, tokens=300, steps=3, warmup=1, save_every=1
    )
    monkeypatch.setattr(lengths, "BASE", small)
    monkeypatch.setattr(lengths, "SENTENCES", 3)
    monkeypatch.setattr(lengths, "SEEDS", (1, 2))
    output = tmp_path / "lengths.json"
    arguments = ["--folder", str(tmp_path / "runs"), "--output", str(output)]
    lengths.main(arguments, output)
    results = json.loads(output.read_text(encoding="utf-8"))
    assert [row["name"] for row in results["rows"]] == ["lstm", "lstm-dot", "lstm-additive"]
    assert all(len(run["bleu"]) == len(lengths.LENGTHS) for row in results["rows"] for run in row["runs"])
    assert "alignment_error" not in results["rows"][0]["runs"][0]
    assert 0 <= results["rows"][1]["runs"][0]["alignment_error"] <= 1
    assert len(results["rows"][2]["gap"]) == len(lengths.LENGTHS)
    assert (tmp_path / "runs" / "lstm-additive-1" / "model" / "card.md").is_file()
    monkeypatch.setattr(runs, "train", None)  # a second training would fail
    lengths.main(arguments, output)
    assert json.loads(output.read_text(encoding="utf-8")) == results
    assert "lstm-dot 2" in capsys.readouterr().out
