"""Our Table 2 compares like with like: equal sizes, equal tries, one text, two ways to be equal."""

import json
from dataclasses import replace

import pytest

from tinytransformer.experiments import __main__ as command
from tinytransformer.experiments import runs, table2
from tinytransformer.training.preparing import initial_model


@pytest.fixture
def small(monkeypatch):
    base = replace(
        table2.BASE, vocab_size=200, d_model=8, num_heads=2, d_ff=16, tokens=300, steps=4, warmup=2, save_every=1
    )
    values = {
        "BASE": base,
        "UPDATES": 4,
        "PAIRS": (100, 200),
        "TUNED_ON": 150,
        "SEEDS": (1,),
        "SENTENCES": 3,
        "PEAKS": (1e-3, 3e-3),
        "ARCHITECTURES": ("lstm", "transformer"),
    }
    for name, value in values.items():
        monkeypatch.setattr(table2, name, value)
    yield
    table2.sized.cache_clear()
    table2.task.cache_clear()


@pytest.mark.parametrize("architecture", table2.ARCHITECTURES)
def test_sizes_are_within_a_tenth_of_the_transformers(architecture):
    goal = runs.parameters(initial_model(table2.sized("transformer")))
    assert abs(runs.parameters(initial_model(table2.sized(architecture))) - goal) < 0.1 * goal


def test_one_text_for_all():
    assert table2.task(table2.PAIRS[0], "test") is table2.task(table2.PAIRS[0], "test")
    one, other = table2.task(1_000, "valid"), table2.task(1_000, "test")
    assert one.train.source == other.train.source
    assert set(one.judged.source).isdisjoint(other.judged.source)


def test_the_best_try_is_the_surest_and_a_failed_one_is_never_it():
    tries = [{"peak": 1.0, "failed_after": 3}, {"peak": 2.0, "perplexity": 3.0}, {"peak": 3.0, "perplexity": 2.0}]
    assert table2.best_peak(tries) == 3.0


def test_the_whole_table(small, tmp_path, monkeypatch):
    table2.sized.cache_clear()
    table2.task.cache_clear()
    monkeypatch.setattr(table2, "seconds_of_an_update", lambda: {"lstm": 0.01, "transformer": 0.015})
    output = tmp_path / "table2.json"
    arguments = ["--folder", str(tmp_path / "runs"), "--output", str(output)]
    part = tmp_path / "part.json"
    with pytest.raises(SystemExit):  # a part never replaces the whole
        table2.main([*arguments, "--pairs", "200"], output)
    table2.main(
        [*arguments[:3], str(part), "--pairs", "200", "--seeds", "1"], output
    )  # two processes can share the work
    for row in json.loads(part.read_text(encoding="utf-8"))["rows"]:
        assert [[run["seed"] for run in found] for found in row["runs"].values()] == [[1]]
    table2.main(arguments, output)
    results = json.loads(output.read_text(encoding="utf-8"))
    for row in results["rows"]:
        assert [one["peak"] for one in row["tries"]] == [1e-3, 3e-3]
        assert list(row["runs"]) == ["100", "200"]
    lstm, transformer = ({name: run[0] for name, run in row["runs"].items()} for row in results["rows"])
    assert lstm["100"]["equal_seconds"]["updates"] == 6, "an update takes it two thirds of the time"
    assert transformer["100"]["equal_seconds"]["updates"] == 4
    assert transformer["100"]["equal_seconds"]["bleu"] == transformer["100"]["equal_updates"]["bleu"]
    monkeypatch.setattr(runs, "train", None)  # a second training would fail
    table2.main(arguments, output)
    assert json.loads(output.read_text(encoding="utf-8")) == results


def test_going_on_is_the_same_as_going_through(small, tmp_path):
    """Scoring in the middle changes nothing about what comes after."""
    table2.sized.cache_clear()
    table2.task.cache_clear()
    recipe = replace(table2.sized("lstm"), pairs=100)
    found = table2.compared(recipe, 6, 1, tmp_path / "twice")["equal_seconds"]
    common = table2.task(100, "test")
    whole = runs.trained(
        initial_model(replace(recipe, seed=1)), replace(recipe, seed=1, steps=6), common, tmp_path / "once"
    )
    assert found["perplexity"] == whole["perplexity"]


def test_an_update_is_timed_for_every_architecture(small):
    table2.sized.cache_clear()
    table2.task.cache_clear()
    found = table2.seconds_of_an_update(rounds=1)
    assert set(found) == {"lstm", "transformer"}
    assert all(seconds > 0 for seconds in found.values())


def test_the_command_names_its_tables(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        command.main(["table9"])
    assert "table9" in capsys.readouterr().err
    called = []
    monkeypatch.setitem(command.TABLES, "table3", ("", lambda arguments, path: called.append((arguments, path.name))))
    command.main(["table3", "--seeds", "1"])
    assert called == [(["--seeds", "1"], "table3.json")]


def test_a_table_without_choices_still_says_where_its_results_go(tmp_path):
    called = []
    command.only_output(called.append)(["--output", str(tmp_path / "here.json")], tmp_path / "there.json")
    assert called == [tmp_path / "here.json"]
