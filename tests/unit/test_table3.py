"""Table 3's rows are what they say, runs are kept and found again, and failures are results."""

import json
from dataclasses import replace

import pytest
import torch

from tinytransformer.experiments import runs, table3
from tinytransformer.experiments.paper import TABLE3, TABLE3_BASE
from tinytransformer.experiments.variants import CHANGES, without_norm, without_residual, without_scaling
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.recording import record_attention
from tinytransformer.model.transformer import Transformer
from tinytransformer.training.recipe import Recipe

CONFIG = TransformerConfig(vocab_size=20, d_model=16, num_heads=2, d_ff=32, num_layers=2, dropout=0.0)
SMALL = Recipe(
    pairs=60, vocab_size=150, d_model=8, num_heads=2, d_ff=16, num_layers=1, norm="post", tokens=300, steps=6, warmup=2,
    save_every=2, falls="root",
)  # fmt: skip


@pytest.fixture
def ids():
    generator = torch.Generator().manual_seed(3)
    return torch.randint(3, 20, (2, 5), generator=generator), torch.randint(3, 20, (2, 4), generator=generator)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(table3, "BASE", SMALL)
    monkeypatch.setattr(table3, "SENTENCES", 4)
    monkeypatch.setattr(table3, "ROWS", (table3.ROWS[0], table3.row_named("no scaling")))


def model(seed=0):
    torch.manual_seed(seed)
    return Transformer(CONFIG).eval()


def test_no_scaling_is_the_formula_without_its_root(ids):
    changed = without_scaling(model())
    with record_attention(model(), qk=True) as plain:
        pass
    with record_attention(changed, qk=True) as records:
        changed(*ids)
    first = records.find("encoder", 0)
    # The recorded queries and keys carry the stretch; the plain projections are what it began with.
    module = changed.encoder.layers[0].self_attention
    x = changed.positions.add(changed.embedding.source(ids[0]))
    q, k = (w(x).view(2, 5, 2, 8).transpose(1, 2) for w in (module.w_q, module.w_k))
    torch.testing.assert_close(first.weights, (q @ k.transpose(-1, -2)).softmax(-1))
    assert not plain


def test_no_residual_passes_on_only_the_sublayers(ids):
    """With every sub-layer silent, an ordinary layer still passes its input on; this one passes on nothing."""
    for change, passes in ((CHANGES[""], True), (without_residual, False)):
        changed = change(model())
        for layer in changed.encoder.layers:
            for last in (layer.self_attention.w_o, layer.feed_forward.w_2):
                torch.nn.init.zeros_(last.weight)
        states = changed.encode(ids[0]).states
        assert bool(states.abs().max() > 0.1) == passes


def test_no_norm_has_none_and_grows(ids):
    changed = without_norm(model())
    assert not [name for name, _ in changed.named_parameters() if "norm" in name]
    assert changed.encode(ids[0]).states.std() > model().encode(ids[0]).states.std()


@pytest.mark.parametrize("change", ["no residual", "no LayerNorm"])
def test_what_replaces_post_norm_wants_post_norm(change):
    with pytest.raises(ValueError, match=r"norm='pre': Without.* takes the place of post-norm only"):
        CHANGES[change](Transformer(replace(CONFIG, norm="pre")))


def test_the_rows_are_the_papers_in_proportion():
    """Each of the paper's rows (A) to (E) has ours beside it, in its order, with the same settings changed."""
    ours = [row for row in table3.ROWS if row.group in "ABCDE"]
    papers = [row for row in TABLE3 if row.group in "ABCDE"]
    assert [row.group for row in ours] == [row.group for row in papers]
    words = {"label_smoothing": "smoothing"}
    base = table3.row_named("base").model(1).config
    for our, their in zip(ours, papers, strict=True):
        changed = {words.get(name, name): value for name, value in their.changes.items()}
        config = our.model(1).config
        for name, value in changed.items():
            if name in ("d_model", "d_ff"):
                before = TABLE3_BASE[name]
                assert getattr(config, name) * before == getattr(base, name) * value, our.name
            elif name in ("dropout", "smoothing", "positions"):
                assert getattr(our.made(1), name) == value
        if our.group == "A":  # the heads' sizes follow, so that the cost stays
            assert config.num_heads * 64 // config.num_heads == 64
            assert runs.parameters(our.model(1)) == runs.parameters(table3.row_named("base").model(1))


def test_three_seeds_differ_in_weights_and_not_in_text():
    row = table3.row_named("base")
    one, two = (row.model(seed).embedding.tokens for seed in (1, 2))
    assert not torch.equal(one, two)
    assert row.made(1).pairs == row.made(2).pairs


def test_a_run_is_done_once_and_found_again(small, tmp_path, monkeypatch, capsys):
    output = tmp_path / "results" / "table3.json"
    table3.main(["--folder", str(tmp_path / "runs"), "--output", str(output), "--seeds", "1", "2"], output)
    results = json.loads(output.read_text(encoding="utf-8"))
    assert [(row["name"], [run["seed"] for run in row["runs"]]) for row in results["rows"]] == [
        ("base", [1, 2]),
        ("no scaling", [1, 2]),
    ]
    assert results["rows"][1]["config"]["change"] == "no scaling"
    assert all(run["perplexity"] > 1 and 0 <= run["bleu"] <= 100 for row in results["rows"] for run in row["runs"])
    assert not list((tmp_path / "runs").rglob("step-*")), "checkpoints of finished runs are not needed"
    monkeypatch.setattr(runs, "train", None)  # a second training would fail
    monkeypatch.setattr(table3, "trained", None)
    table3.main(["--folder", str(tmp_path / "runs"), "--output", str(output), "--seeds", "1", "2"], output)
    assert json.loads(output.read_text(encoding="utf-8")) == results
    assert "no scaling" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_to_the_same_result(small, tmp_path, monkeypatch):
    common, row = table3.task(), table3.row_named("base")
    whole = table3.run_one(row, 1, common, tmp_path / "whole")
    place = table3.run_folder(tmp_path / "cut", row, 1)
    short = replace(row.made(1), steps=4)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "scores", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            runs.trained(row.model(1), short, common, place)
    assert list(place.glob("step-*"))
    again = table3.run_one(row, 1, common, tmp_path / "cut")
    assert {**again, "seconds": 0} == {**whole, "seconds": 0}


def test_other_settings_are_not_mistaken_for_these(small, tmp_path, monkeypatch):
    common, row = table3.task(), table3.row_named("base")
    table3.run_one(row, 1, common, tmp_path)
    monkeypatch.setattr(table3, "BASE", replace(SMALL, steps=7))
    with pytest.raises(ValueError, match="holds a run with other settings"):
        table3.run_one(row, 1, common, tmp_path)


def test_a_loss_that_is_no_number_is_a_result(small, tmp_path, monkeypatch):
    row = replace(table3.row_named("base"), recipe={"peak": 1e30, "clip": 1e30})
    found = runs.trained(row.model(1), row.made(1), table3.task(), tmp_path)
    assert set(found) == {"failed_after"}
    assert 0 <= found["failed_after"] < 6
    assert "failed after" in table3.line({"name": "x", "group": "y", "runs": [found]})


def test_unknown_rows_are_named(tmp_path):
    with pytest.raises(ValueError, match="there is no row 'h = 3': choose from base; h = 1"):
        table3.main(["--only", "h = 3"], tmp_path / "table3.json")
