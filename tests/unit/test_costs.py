"""Table 2's cost column, and the paper's tables as values."""

import json

import pytest
import torch
from support import small_model

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.experiments import costs, paper
from tinytransformer.experiments.measuring import counted_operations
from tinytransformer.inspection import table_plots
from tinytransformer.resources import data_folder


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "costs.json").read_text(encoding="utf-8"))


def two_digits(value: float) -> float:
    return float(f"{value:.1e}")


@pytest.mark.parametrize("name", ["base", "big"])
def test_hours_times_gpus_are_what_the_paper_prints(name):
    training = paper.TRAINING[name]
    found = costs.hours_times_gpus(training.hours, training.gpus, paper.SUSTAINED_TFLOPS["P100"])
    (row,) = [system for system in paper.TABLE2 if f"({name})" in system.name]
    assert two_digits(found) == training.operations == row.operations_german


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_k": 3, "d_v": 5},
        {"num_layers": 1, "norm": "pre"},
        {"positions": "learned", "tie_embeddings": False, "output_bias": True},
    ],
)
@pytest.mark.parametrize(("source", "target"), [(4, 4), (7, 3), (1, 9)])
def test_the_formula_counts_what_pytorch_counts(changes, source, target):
    model = small_model(**changes)
    sentence, translation = torch.randint(3, 30, (1, source)), torch.randint(3, 30, (1, target))
    expected = sum(costs.products(model.config, source, target).values())
    assert counted_operations(lambda: model(sentence, translation)) == expected
    both = counted_operations(lambda: model(sentence, translation).sum().backward())
    assert both == costs.FORWARD_AND_BACKWARD * expected


def test_each_part_is_counted_by_itself():
    model = small_model()
    parts = costs.products(model.config, 5, 7)
    assert counted_operations(lambda: model.encode(torch.randint(3, 30, (1, 5)))) == sum(
        value for name, value in parts.items() if name.startswith("encoder")
    )
    assert counted_operations(lambda: model.logits(torch.randn(7, model.config.d_model))) == parts["output"]


def test_training_takes_the_operations_of_its_sentences():
    config = TransformerConfig(vocab_size=100, d_model=16, num_heads=4, d_ff=8, num_layers=1)
    training = paper.Training(hours=1.0, steps=3, operations=0.0, source_tokens=40, target_tokens=20)
    pair = 2 * 3 * sum(costs.products(config, 10, 5).values())  # four pairs of 10 and 5 tokens in each step
    assert costs.training_operations(config, training, 5) == 3 * 4 * pair


def test_what_a_training_would_take_today():
    gpu = costs.Gpu(100, "bfloat16", 500, 2.0, "a data sheet")
    assumed = costs.Assumptions(utilisation=0.5, scaling=0.8)
    operations = 50e12 * 3600  # an hour at half of the peak
    assert costs.today(operations, gpu, 1, assumed) == pytest.approx(
        {"hours": 1.0, "dollars": 2.0, "kilowatt_hours": 0.5}
    )
    assert costs.today(operations, gpu, 8, assumed) == pytest.approx(
        {"hours": 1 / 6.4, "dollars": 2.5, "kilowatt_hours": 0.625}
    )
    assert costs.today(operations, costs.GPUS["P100"], 1, assumed)["dollars"] is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"utilisation": 30}, "utilisation=30 is no share: choose a number above 0 and at most 1"),
        ({"scaling": 0.0}, "scaling=0.0 is no share"),
        ({"sentence_length": 0}, "sentence_length=0 must be at least 1 token"),
    ],
)
def test_assumptions_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        costs.Assumptions(**wrong)


def test_the_stored_results_are_what_the_module_computes(tmp_path, stored):
    computed = costs.run(tmp_path / "costs.json")
    assert json.loads((tmp_path / "costs.json").read_text(encoding="utf-8")) == json.loads(json.dumps(computed))
    assert json.loads(json.dumps(computed["rows"])) == stored["rows"]
    assert json.loads(json.dumps(computed["assumptions"])) == stored["assumptions"]
    assert computed["gpus"] == stored["gpus"]


def test_the_models_arithmetic_is_less_than_the_hours_say(stored):
    for row in stored["rows"]:
        assert row["products_counted"] == sum(row["products"].values())
        assert 0.25 < row["model_share_of_hours"] < 0.45
        assert row["achieved_tflops"] == pytest.approx(9.5 * row["model_share_of_hours"])
        low, high = (row["operations_from_model_by_length"][length] for length in ("10", "100"))
        assert high / low < 1.03, "the assumed length of sentences hardly matters"


def test_the_rows_of_table_3_have_the_parameters_that_the_paper_prints():
    ignored = ("label_smoothing", "steps")
    for row in paper.TABLE3:
        settings = {name: value for name, value in {**paper.TABLE3_BASE, **row.changes}.items() if name not in ignored}
        with torch.device("meta"):
            model = Transformer(TransformerConfig(vocab_size=37_000, **settings))
        millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        # The paper rounds, and its vocabulary is only roughly known.
        assert millions == pytest.approx(row.millions or 65, rel=0.07), dict(row.changes)
    assert [row.group for row in paper.TABLE3].count("C") == 7
    assert (len(paper.TABLE1), len(paper.TABLE2), len(paper.TABLE3), len(paper.TABLE4)) == (4, 10, 20, 12)


def test_costs_are_drawn(stored):
    (axes,) = table_plots.training_costs(stored).axes
    assert [text.get_text() for text in axes.texts][:2] == ["3.3·10¹⁸", "2.3·10¹⁹"]
    assert [bar.get_width() for bar in axes.patches][2] == stored["rows"][0]["operations_from_model"]


def test_quality_is_drawn_over_cost():
    panels = {"German": {"GNMT": (2e19, 24.6), "GNMT ensemble": (2e20, 26.3), "Transformer (base)": (3e18, 27.3)}}
    panels["French"] = {"Transformer (base)": (3e18, 38.1)}
    figure = table_plots.quality_over_cost(panels)
    single, ensemble, ours = figure.axes[0].lines
    assert single.get_color() == ensemble.get_color() != ours.get_color()
    assert single.get_marker() != ensemble.get_marker()
    assert (ours.get_xdata()[0], ours.get_ydata()[0]) == (3e18, 27.3)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(panels["German"])
