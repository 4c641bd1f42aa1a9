"""Long sequences: the ways are the functions they stand for, the reach is exact, and a run goes on where it stopped."""

import json
from statistics import median

import pytest
import torch
from support import max_difference

from tinytransformer.experiments import long, measuring
from tinytransformer.inspection import practice_plots
from tinytransformer.model.attention import attention_weights
from tinytransformer.model.masks import window_mask
from tinytransformer.resources import data_folder

TINY = long.Settings(
    lengths=(8, 16), num_heads=2, head_size=4, radius=3, block=5, fitted=2, rounds=1, reach_radii=(2,),
    reach_layers=(1, 3),
)  # fmt: skip


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "long.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("n", [1, 7, 16])
def test_every_way_is_full_attention_or_the_window(n):
    query, key, value = (torch.randn(1, 2, n, 4, dtype=torch.float64) for _ in range(3))
    full = attention_weights(query, key) @ value
    near = attention_weights(query, key, window_mask(n, TINY.radius)) @ value
    found = {name: way(query, key, value) for name, way in long.ways(TINY).items()}
    for name in ("explicit", "fused", "in blocks"):
        assert max_difference(found[name], full) < 1e-12, name
    for name in ("window", "window, by a mask"):
        assert max_difference(found[name], near) < 1e-12, name
    assert n <= TINY.radius + 1 or max_difference(full, near) > 1e-3


def test_a_window_saves_what_a_mask_does_not():
    """A window's memory grows with n; a mask adds n² to whatever it hides."""
    settings = long.Settings(lengths=(512, 1024), num_heads=1, head_size=8, radius=8, fitted=2)
    ways = long.ways(settings)

    def peak(name: str, n: int) -> int:
        return measuring.peak_bytes(long.task(ways[name], "forward", n, settings))

    assert peak("window", 1024) < 2.5 * peak("window", 512)
    assert peak("explicit", 1024) > 3.5 * peak("explicit", 512)
    assert peak("window, by a mask", 1024) > 1024 * 1024 > peak("window", 1024)


def test_in_blocks_the_weights_are_kept_for_the_backward_pass_and_only_for_it():
    settings = long.Settings(lengths=(256, 512), num_heads=1, head_size=8, block=32, fitted=2)
    way = long.ways(settings)["in blocks"]
    forward, training = (measuring.peak_bytes(long.task(way, kind, 512, settings)) for kind in long.PASSES)
    assert forward < 4 * 512 * 512 < training


def test_an_unknown_pass_is_refused():
    with pytest.raises(ValueError, match="'backward' is no pass that is measured: choose forward or training"):
        long.task(torch.add, "backward", 4, TINY)
    with pytest.raises(ValueError, match="fitted=3 lengths make no slope: choose 2 to 2"):
        long.Settings(lengths=(4, 8), fitted=3)


@pytest.mark.parametrize(("radius", "layers"), [(1, 1), (1, 4), (3, 2), (5, 3)])
def test_news_travels_a_radius_a_layer_and_not_a_step_farther(radius, layers):
    far = 2 * radius * layers + 7
    assert long.reach(radius, layers, 2 * far + 1) == radius * layers
    assert long.reach(None, layers, 2 * far + 1) == far
    assert long.reach(radius, layers, 2 * (radius * layers - 1) + 1) == radius * layers - 1, "the sequence ends first"


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measuring, "SHORTEST", 0.0)
    path = tmp_path / "long.json"
    first = long.run(path, TINY)
    assert json.loads(path.read_text(encoding="utf-8")) == first
    cells = {(row["way"], row["pass"], row["n"]) for row in first["times"]}
    assert cells == {(row["way"], row["pass"], row["n"]) for row in first["memory"]}
    assert len(cells) == 5 * 2 * 2
    assert [(row["measured"], row["full"]) for row in first["reach"]] == [(2, 8), (6, 8)]
    capsys.readouterr()
    path.write_text(json.dumps({key: value for key, value in first.items() if key != "slopes"}), encoding="utf-8")
    monkeypatch.setattr(long, "times", lambda settings: pytest.fail("times were measured already"))
    assert long.run(path, TINY) == first
    assert capsys.readouterr().out == "slopes: 10 rows\n"


def test_the_stored_results_are_of_these_settings_and_say_what_the_lesson_says(stored):
    assert stored["settings"] == json.loads(json.dumps(vars(long.FULL)))
    assert (stored["command"], stored["note"]) == (long.COMMAND, long.NOTE)
    assert all(row["measured"] == row["expected"] < row["full"] for row in stored["reach"])
    grows = {(row["way"], row["pass"]): row["bytes"] for row in stored["slopes"]}
    assert grows["explicit", "forward"] == pytest.approx(2, abs=0.1)
    assert grows["window, by a mask", "forward"] > 1.7
    assert max(grows[way, "forward"] for way in ("fused", "in blocks", "window")) < 1.1
    assert grows["in blocks", "training"] > 1.7, "autograd keeps every block's weights"
    assert grows["window", "training"] < 1.2


# The figures


def test_time_and_memory_are_drawn_with_their_growth(stored):
    figure = practice_plots.long_sequences(stored, "training")
    for axes, section in zip(figure.axes, ("times", "memory"), strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert [label.split(":")[0] for label in labels] == list(long.ways(long.FULL))
        row = next(row for row in stored[section] if row["pass"] == "training")
        wanted = median(row["seconds"]) if section == "times" else row["bytes"] / 1e6
        assert list(axes.lines[0].get_xdata()) == stored["settings"]["lengths"]
        assert axes.lines[0].get_ydata()[0] == pytest.approx(wanted)
    fit = next(row for row in stored["slopes"] if (row["way"], row["pass"]) == ("explicit", "training"))
    assert labels[0] == f"explicit: n^{fit['bytes']:.1f}"
    with pytest.raises(ValueError, match="'backward' was not measured: choose forward or training"):
        practice_plots.long_sequences(stored, "backward")


def test_reach_is_drawn_on_its_formula(stored):
    (axes,) = practice_plots.reach_by_layers(stored).axes
    full, *others = axes.lines
    assert set(full.get_ydata()) == {stored["reach"][0]["full"]}
    for formula, measured in zip(others[::2], others[1::2], strict=True):
        assert list(formula.get_ydata()) == list(measured.get_ydata())
    assert len(axes.get_legend().get_texts()) == 1 + len(stored["settings"]["reach_radii"])
