"""The peers of the benchmarks run our model: the same logits, whatever the norm; so their speeds can be compared."""

import sys
from pathlib import Path

import pytest
import torch
from support import max_difference, random_ids, small_model

from tinytransformer.translation.exchange.formats import ExchangeError

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
peers = __import__("peers")


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("output_bias", [False, True])
def test_transformers_has_our_logits(norm, output_bias):
    pytest.importorskip("transformers", reason="transformers is a test-only dependency")
    model = small_model(norm=norm, output_bias=output_bias)
    theirs = peers.to_transformers(model)
    source, target = random_ids(4, 11, padding=5), random_ids(4, 8)
    with torch.no_grad():
        logits = theirs(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
        assert max_difference(logits, model(source, target)) <= 1e-5


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_ctranslate2_has_our_probabilities(norm, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="ctranslate2 is in requirements-exchange.txt")
    model = small_model(norm=norm, output_bias=True)
    theirs = ctranslate2.Translator(str(peers.to_ctranslate2(model, tmp_path)), "cpu", compute_type="float32")
    source, target = random_ids(4, 7), random_ids(4, 5)
    texts = [[[str(number) for number in row] for row in ids.tolist()] for ids in (source, target)]
    found = torch.tensor([result.log_probs for result in theirs.score_batch(*texts)])
    start, end = torch.full((4, 1), 1), torch.full((4, 1), 2)
    with torch.no_grad():
        log_probabilities = model(source, torch.cat([start, target], 1)).log_softmax(-1)
    expected = log_probabilities.gather(-1, torch.cat([target, end], 1)[..., None])[..., 0]
    assert max_difference(found, expected) <= 1e-4


def test_a_model_that_the_peers_cannot_run_is_named():
    with pytest.raises(ExchangeError, match="cannot run this model: positions='rotary', and only 'sinusoidal' is"):
        peers.to_transformers(small_model(positions="rotary"))


def test_ratios_are_of_medians():
    seconds = {"ours": [1.0, 2.0, 90.0], "other": [4.0, 3.0, 50.0]}
    assert peers.ratios(seconds, "ours") == {"other": 2.0}


def test_systems_take_turns_after_a_round_to_warm_up():
    turns = []
    seconds = peers.in_turns({name: lambda name=name: turns.append(name) for name in "ab"}, rounds=2)
    assert turns == list("ababab")
    assert [len(values) for values in seconds.values()] == [2, 2]
