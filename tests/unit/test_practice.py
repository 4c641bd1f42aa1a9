"""Training as practitioners do it: recomputing and accumulating change no gradient, and every way has its row."""

import json
import os
from dataclasses import replace

import pytest
import torch
from support import max_difference

from tinytransformer.experiments import measuring, practice
from tinytransformer.inspection import practice_plots
from tinytransformer.resources import data_folder

TINY = practice.Settings(
    vocab_size=40, d_model=16, num_heads=2, d_ff=24, num_layers=2, pairs=10, shortest=2, longest=6, parts=3, rounds=1,
    compile=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "practice.json").read_text(encoding="utf-8"))


def first(way: str, settings: practice.Settings = TINY) -> tuple[float, torch.Tensor]:
    step = practice.Step(way, settings)
    return step(), step.gradients()


def test_recomputing_changes_no_gradient():
    (plain_loss, plain), (loss, gradients) = first("plain"), first("recomputed")
    assert loss == plain_loss
    assert torch.equal(gradients, plain)
    assert plain.abs().max() > 1e-3


def test_recomputing_throws_the_same_dice_again():
    """With dropout the second run of a layer must drop what the first one did."""
    found = []
    for way in ("plain", "recomputed"):
        step = practice.Step(way, TINY)
        for module in step.model.modules():
            if hasattr(module, "p"):
                module.p = 0.5
        torch.manual_seed(3)
        found.append((step(), step.gradients()))
    assert found[0][0] == found[1][0] != first("plain")[0]
    assert torch.equal(found[0][1], found[1][1])


def test_recomputing_keeps_less_and_works_twice():
    calls = []
    ways = {way: practice.Step(way, TINY) for way in ("plain", "recomputed")}
    for way, step in ways.items():
        step.model.encoder.layers[0].feed_forward.register_forward_pre_hook(lambda *_, way=way: calls.append(way))
        step()
    assert calls == ["plain", "recomputed", "recomputed"]
    assert ways["recomputed"].kept_bytes() < 0.4 * ways["plain"].kept_bytes()


@pytest.mark.parametrize("parts", [1, 2, 3, 11])
def test_accumulating_changes_no_gradient(parts):
    """Parts hold different numbers of tokens, so a mean of the parts' means would differ."""
    settings = replace(TINY, pairs=11, parts=parts)
    (plain_loss, plain), (loss, gradients) = first("plain", settings), first("accumulated", settings)
    assert loss == pytest.approx(plain_loss, rel=1e-6)
    assert max_difference(gradients, plain) < 1e-6 < plain.abs().max()
    counts = {batch.num_targets for batch in practice.Step("accumulated", settings).batches}
    assert parts == 1 or len(counts) > 1


def test_accumulating_keeps_one_part_at_a_time():
    """Of equally long sentences, so that the parts' padding is the same."""
    settings = replace(TINY, pairs=12, shortest=6, parts=3)
    whole, parts = (practice.Step(way, settings).kept_bytes() for way in ("plain", "accumulated"))
    assert parts == pytest.approx(whole / 3, rel=0.01)


def test_the_same_pairs_in_parts():
    pairs = practice.made_up(TINY)
    assert pairs == practice.made_up(TINY)
    assert {len(side) for pair in pairs for side in pair} <= set(range(2, 7))
    batches = practice.in_parts(pairs, 3)
    assert sum(len(batch.source) for batch in batches) == TINY.pairs
    assert sum(batch.num_targets for batch in batches) == practice.in_parts(pairs, 1)[0].num_targets
    with pytest.raises(ValueError, match="10 pairs do not make 11 batches: choose 1 to 10"):
        practice.in_parts(pairs, 11)


def test_bfloat16_is_close_and_not_equal():
    (plain_loss, plain), (loss, gradients) = first("plain"), first("bfloat16")
    assert gradients.dtype == torch.float32
    told = practice.compared(loss, gradients, plain_loss, plain)
    assert 1e-4 < told["relative_gradient_difference"] < 0.1
    assert told["loss_difference"] < 0.05
    kept = [practice.Step(way, TINY).kept_bytes() for way in ("plain", "bfloat16")]
    assert kept[0] != kept[1], "what is kept has another precision, too"


def test_differences_are_told_as_they_are():
    told = practice.compared(1.5, torch.tensor([3.0, 0.0]), 1.0, torch.tensor([3.0, -4.0]))
    assert told == {
        "loss_difference": 0.5,
        "largest_gradient": 4.0,
        "largest_gradient_difference": 4.0,
        "relative_gradient_difference": pytest.approx(0.8),
    }


def test_what_cannot_be_done_here_is_said(monkeypatch):
    monkeypatch.setattr(practice.shutil, "which", lambda name: None)
    missing = practice.impossible(replace(TINY, compile=True))
    assert "torch.compile needs a C++ compiler, and there is none: install g++ or clang++" in missing["compiled"]

    def refuse() -> None:
        raise practice.PrecisionError("this processor cannot multiply in bfloat16")

    monkeypatch.setattr(practice, "try_bfloat16", refuse)
    assert practice.bfloat16_support()["a_product_works"] is False
    rows = {row["way"]: row for row in practice.training(replace(TINY, compile=True))}
    assert list(rows) == list(practice.WAYS)
    assert rows["bfloat16"] == {"way": "bfloat16", "missing": "this processor cannot multiply in bfloat16"}
    assert "seconds" in rows["plain"]
    assert "inference_mode, bfloat16" not in [row["way"] for row in practice.inference(TINY)]


def test_a_compiler_begins_with_an_empty_cache_on_one_core_and_leaves_no_trace(monkeypatch):
    cache, threads = "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS"
    monkeypatch.setenv(cache, "somewhere")
    monkeypatch.delenv(threads, raising=False)

    def interrupted() -> None:
        with practice._fresh_compiler():
            assert os.listdir(os.environ[cache]) == []
            assert os.environ[threads] == "1"
            folders.append(os.environ[cache])
            raise KeyboardInterrupt

    folders: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.environ[cache] == "somewhere"
    assert threads not in os.environ
    assert not os.path.exists(folders[0])


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measuring, "SHORTEST", 0.0)
    path = tmp_path / "practice.json"
    once = practice.run(path, TINY)
    assert json.loads(path.read_text(encoding="utf-8")) == once
    assert [row["way"] for row in once["training"]] == list(practice.WAYS)
    assert once["training"][-1] == {"way": "compiled", "missing": "not asked for"}
    assert [row["largest_logit_difference"] == 0 for row in once["inference"]] == [True, True, False]
    capsys.readouterr()
    path.write_text(json.dumps({key: value for key, value in once.items() if key != "bfloat16"}), encoding="utf-8")
    monkeypatch.setattr(practice, "training", lambda settings: pytest.fail("training was measured already"))
    again = practice.run(path, TINY)
    assert {key: again[key] for key in once} == once
    assert capsys.readouterr().out == "bfloat16: 3 rows\n"


def test_the_stored_results_are_of_these_settings_and_keep_gradients_equal(stored):
    assert stored["settings"] == vars(practice.FULL)
    assert (stored["command"], stored["note"]) == (practice.COMMAND, practice.NOTE)
    rows = {row["way"]: row for row in stored["training"]}
    assert list(rows) == list(practice.WAYS)
    assert rows["recomputed"]["largest_gradient_difference"] == 0
    assert rows["accumulated"]["relative_gradient_difference"] < 1e-6
    for way in ("recomputed", "accumulated"):
        assert rows[way]["kept_bytes"] < 0.4 * rows["plain"]["kept_bytes"]
        assert rows[way]["peak_bytes"] < rows["plain"]["peak_bytes"]


def test_ways_of_training_are_drawn_as_multiples_of_the_plain_one(stored):
    (axes,) = practice_plots.ways_of_training(stored).axes
    rows = [row for row in stored["training"] if "missing" not in row and row["way"] != "plain"]
    assert [text.get_text() for text in axes.get_xticklabels()] == [row["way"] for row in rows]
    heights = [bar.get_height() for bar in axes.patches[len(rows) :]]
    plain = stored["training"][0]["peak_bytes"]
    assert heights == pytest.approx([row["peak_bytes"] / plain for row in rows])
