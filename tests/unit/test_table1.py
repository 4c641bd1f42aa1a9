"""Table 1 measured: layers equal what they stand for, and formulas equal what is counted."""

import itertools
import json
import math
from statistics import median

import pytest
import torch
from support import max_difference
from torch import nn

from tinytransformer.experiments import generating, layer_kinds, measuring, table1
from tinytransformer.experiments.layer_kinds import KINDS, CausalConvolution
from tinytransformer.inspection import table_plots
from tinytransformer.model.attention import MultiHeadAttention, attention
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.masks import window_mask
from tinytransformer.resources import data_folder

TINY = table1.Settings(
    lengths=(4, 8), features=(64, 72), fitted=2, rounds=1, counted_up_to=8, claim=(5, 8), claim_batches=(1, 2),
    path_lengths=(4, 9), path_kernels=(3,), generated=(2, 4), generating_features=64, tokens_in_batch=16,
    cache_lengths=(5,),
)  # fmt: skip


@pytest.fixture(scope="module")
def stored() -> dict:
    return json.loads((data_folder("results") / "table1.json").read_text(encoding="utf-8"))


# The layers


@pytest.mark.parametrize("length", [1, 3, 4, 11, 16])
@pytest.mark.parametrize("radius", [1, 4, 20])
def test_attention_in_blocks_equals_attention_with_a_mask(length, radius):
    tensors = [torch.randn(2, 3, length, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    wanted = torch.randn(2, 3, length, 5, dtype=torch.float64)
    results = []
    for found in (
        layer_kinds.blocked_attention(*tensors, radius),
        attention(*tensors, window_mask(length, radius)),
    ):
        results.append([found, *torch.autograd.grad((found * wanted).sum(), tensors)])
    for blocked, masked in zip(*results, strict=True):
        assert max_difference(blocked, masked) < 1e-12


def test_a_blocked_layer_equals_a_masked_one_with_the_same_weights():
    masked, blocked = (KINDS[f"restricted, {way}"].build(64) for way in ("by a mask", "in blocks"))
    blocked.load_state_dict(masked.state_dict())
    x = torch.randn(2, 50, 64)
    assert max_difference(masked(x), blocked(x)) < 1e-5
    assert max_difference(masked(x), KINDS["self-attention"].build(64)(x)) > 1e-2


def test_blocks_need_a_radius():
    with pytest.raises(ValueError, match="radius of at least 1, the size of its blocks, got 0"):
        layer_kinds.blocked_attention(*(torch.randn(1, 1, 4, 2) for _ in range(3)), radius=0)


def test_attention_written_out_equals_the_fused_one():
    fused, written = KINDS["self-attention"].build(128), KINDS["self-attention, written out"].build(128)
    written.load_state_dict(fused.state_dict())
    x = torch.randn(2, 9, 128)
    assert max_difference(fused(x), written(x)) < 1e-5


def test_a_separable_convolution_is_one_filter_per_feature_and_then_one_matrix():
    layer = layer_kinds.separable_convolution(6, kernel=3)
    along, across = layer[0].convolution, layer[1]
    x = torch.randn(2, 7, 6)
    expected = torch.zeros(2, 7, 6)
    for position, feature in itertools.product(range(7), range(6)):
        expected[:, position, feature] = along.bias[feature]
        for back in range(3):
            if position - back >= 0:
                expected[:, position, feature] += along.weight[feature, 0, 2 - back] * x[:, position - back, feature]
    assert max_difference(layer(x), expected @ across.weight.T + across.bias) < 1e-5


@pytest.mark.parametrize(("kernel", "layers"), [(2, 4), (3, 3), (5, 2)])
def test_dilated_convolutions_reach_k_to_the_power_of_the_layers(kernel, layers):
    length = kernel**layers + 3
    x = torch.randn(1, length, 4, dtype=torch.float64, requires_grad=True)
    outputs = layer_kinds.stacked(lambda number: CausalConvolution(4, kernel, dilation=kernel**number))(x)
    (gradient,) = torch.autograd.grad(next(itertools.islice(outputs, layers - 1, None))[0, -1].sum(), x)
    seen = gradient[0].ne(0).any(dim=-1)
    assert seen.tolist() == [False] * 3 + [True] * kernel**layers


def test_as_many_steps_as_positions_make_the_recurrent_layer():
    layer = nn.RNN(6, 6, batch_first=True)
    x = torch.randn(2, 5, 6)
    steps = list(itertools.islice(layer_kinds.recurrent_steps(layer)(x), 5))
    whole = layer(x)[0]
    assert max_difference(steps[-1], whole) < 1e-6
    assert max_difference(steps[-2], whole) > 1e-4
    assert max_difference(steps[-2][:, :-1], whole[:, :-1]) < 1e-6


# Formulas and counters


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("n", "d"), [(3, 64), (16, 128), (37, 64)])
def test_operations_are_those_that_pytorch_counts(name, n, d):
    kind = KINDS[name]
    layer = kind.build(d)
    assert measuring.counted_operations(lambda: layer(torch.randn(1, n, d))) == kind.operations(n, d)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self-attention", lambda n: 4),  # projection, scores, values, output
        ("restricted, in blocks", lambda n: 4),
        ("recurrent", lambda n: n),
        ("LSTM", lambda n: n),
        ("convolution", lambda n: 1),
        ("separable convolution", lambda n: 2),
    ],
)
def test_steps_that_wait_for_each_other(name, expected):
    layer = KINDS[name].build(64)
    for n in (2, 9, 30):
        assert measuring.longest_chain(lambda n=n: layer(torch.randn(1, n, 64))) == expected(n)


def test_the_longest_chain_takes_the_longest_way():
    matrix = torch.randn(3, 3, requires_grad=True)
    assert measuring.longest_chain(lambda: (matrix @ matrix @ matrix).tanh() + matrix @ matrix) == 2


@pytest.mark.parametrize("n", [2, 3, 9, 10, 17, 18, 27, 28])
def test_paths_have_the_lengths_of_the_formulas(n):
    generator = torch.Generator().manual_seed(0)
    for name, (outputs, formula) in layer_kinds.travelling((2, 3, 5), d=4).items():
        assert measuring.path_length(outputs, n, 4, generator) == formula(n), name


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_path_formulas_are_of_the_papers_order(n):
    found = {name: formula(n) for name, (_, formula) in layer_kinds.travelling((3, 5), d=4).items()}
    assert (found["self-attention"], found["recurrent"]) == (1, n)
    for k in (3, 5):
        assert n / k <= found[f"contiguous, k = {k}"] <= 2 * n / k
        assert abs(found[f"dilated, k = {k}"] - math.log(n, k)) <= 1
    assert n / 33 <= found["restricted, r = 33"] <= 1 + 33 / 16 * n / 33


def test_a_layer_that_never_moves_on_is_refused():
    with pytest.raises(ValueError, match="after 3 layers the last of 3 positions does not depend on the first"):
        measuring.path_length(
            layer_kinds.stacked(lambda number: nn.Linear(4, 4)), 3, 4, torch.Generator().manual_seed(0)
        )


@pytest.mark.parametrize("d", [64, 100])
def test_where_attention_becomes_the_dearer_one(d):
    def crossover(rival: str, count: str) -> int | None:
        return table1.first_above(getattr(KINDS["self-attention"], count), getattr(KINDS[rival], count), d)

    assert crossover("recurrent", "paper") == crossover("LSTM", "paper") == d + 1
    assert crossover("recurrent", "operations") == 1, "2n²d + 4nd² is above 2nd² everywhere"
    assert crossover("GRU", "operations") == d + 1, "2n²d + 4nd² = 6nd² at n = d"
    assert crossover("LSTM", "operations") == 2 * d + 1, "2n²d + 4nd² = 8nd² at n = 2d"
    assert table1.first_above(KINDS["recurrent"].paper, lambda n, d: 10**9, d) is None


def test_slopes_are_powers():
    sizes = [10, 20, 70]
    assert measuring.slope(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    spread = measuring.slope_over_rounds(sizes, [[size, size**2, size**3] for size in sizes])
    assert spread == pytest.approx({"median": 2, "low": 1, "high": 3})
    with pytest.raises(ValueError, match=r"at least two sizes, got \[8\]"):
        measuring.slope([8], [1.0])


def test_crossings_lie_between_the_sizes():
    sizes = [1, 10, 100]
    assert measuring.crossing(sizes, sizes, [30, 30, 30]) == pytest.approx(30)
    assert measuring.crossing(sizes, [9, 9, 9], [10, 10, 10]) is None
    assert measuring.crossing(sizes, [9, 9, 9], [1, 1, 1]) == 1
    last = measuring.crossing([*sizes, 1000], [1, 100, 1, 100], [10] * 4)
    assert last == pytest.approx(10**2.5), "of several crossings the last one counts"


# Seconds and bytes


def test_tasks_take_turns(monkeypatch):
    monkeypatch.setattr(measuring, "SHORTEST", 0.0)
    calls = []
    measured = measuring.in_turns({name: lambda name=name: calls.append(name) for name in "ab"}, rounds=3)
    assert "".join(calls).endswith("ababab")
    assert {name: len(values) for name, values in measured.items()} == {"a": 3, "b": 3}


def test_short_tasks_are_repeated(monkeypatch):
    monkeypatch.setattr(measuring, "SHORTEST", 0.005)
    calls = []
    (seconds,) = measuring.in_turns({"a": lambda: calls.append(1)}, rounds=1)["a"]
    assert len(calls) > 100
    assert seconds < 0.001


def test_peak_bytes_are_what_is_held_at_one_moment():
    def run() -> None:
        first = torch.ones(1000)
        second = torch.ones(500)
        del first
        torch.ones(750), second

    assert measuring.peak_bytes(run) == 4 * 1500


def test_written_out_attention_holds_the_matrix_and_the_fused_one_does_not():
    n, d = 256, 64
    fused, written = (
        measuring.peak_bytes(generating.training_step(KINDS[name].build(d), 1, n, d))
        for name in ("self-attention", "self-attention, written out")
    )
    assert written - fused > 4 * n * n


def test_one_thread_is_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with measuring.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


# Generating


@torch.inference_mode()
def test_an_attention_step_adds_the_last_position_to_the_cache():
    layer = MultiHeadAttention(64, 1)
    key, value = generating.attention_step(layer, 7)()
    assert key.shape == value.shape == (1, 1, 7, 64)


def test_the_cache_has_the_bytes_of_the_formula():
    config = TransformerConfig(vocab_size=20, d_model=16, num_heads=4, d_ff=8, num_layers=3, max_length=9)
    cache = generating.filled_cache(config, source=5, target=9, rows=2)
    expected = {"own positions": 2 * 3 * 9 * 16 * 4 * 2, "the sentence": 2 * 3 * 5 * 16 * 4}
    assert generating.cache_bytes(cache) == generating.cache_formula(config, 5, 9, 2) == expected


def test_batches_and_what_is_kept():
    rows = generating.throughput([4, 8], 64, tokens=16, rounds=1)
    assert {(row["kind"], row["n"], row["batch"]) for row in rows} == {
        (kind, n, 16 // n) for kind in ("self-attention", "recurrent", "LSTM") for n in (4, 8)
    }
    kept = {(row["kind"], row["n"]): row["bytes_kept"] for row in generating.latency([2, 5], 64, rounds=1)}
    assert [kept["self-attention", n] for n in (2, 5)] == [2 * n * 64 * 4 for n in (2, 5)]
    assert [kept["LSTM", n] for n in (2, 5)] == [2 * 64 * 4] * 2
    assert [kept["recurrent", n] for n in (2, 5)] == [64 * 4] * 2
    with pytest.raises(ValueError, match="n=1 leaves nothing to look back at: measure the second position"):
        generating.latency([1], 64, rounds=1)


# The results file


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measuring, "SHORTEST", 0.0)
    path = tmp_path / "results" / "table1.json"
    first = table1.run(path, TINY)
    assert json.loads(path.read_text(encoding="utf-8")) == first
    assert all(row["counted"] == row["all"] for row in first["operations"] if "counted" in row)
    assert all(row["measured"] == row["formula"] for row in first["paths"] + first["cache"])
    capsys.readouterr()

    without = {name: value for name, value in first.items() if name != "claim"}
    path.write_text(json.dumps(without), encoding="utf-8")
    monkeypatch.setattr(table1, "times", lambda settings: pytest.fail("times were measured already"))
    again = table1.run(path, TINY)
    assert capsys.readouterr().out == "claim: 5 rows\n"
    assert {name: again[name] for name in without} == without

    with pytest.raises(pytest.fail.Exception, match="measured already"):
        table1.run(path, table1.FULL.__class__(**{**vars(TINY), "rounds": 3}))


def test_settings_that_make_no_slope_are_refused():
    with pytest.raises(ValueError, match="fitted=5 sizes make no slope: choose 2 to 4"):
        table1.Settings(fitted=5)


def test_the_stored_results_are_of_these_settings_and_keep_what_the_table_says(stored):
    assert stored["settings"] == json.loads(json.dumps(vars(table1.FULL)))
    assert stored["command"] == table1.COMMAND
    assert all(row["counted"] == row["all"] for row in stored["operations"] if "counted" in row)
    assert all(row["measured"] == row["formula"] for row in stored["paths"] + stored["cache"])
    for row in stored["slopes"]:
        if row["along"] == "n" and row["at"] == 64:  # where n is far above d, and pairs of positions count most
            assert row["bytes"] == pytest.approx(row["bytes_predicted"], abs=0.4), row


# The figures


def test_growth_is_drawn_with_fitted_and_predicted_slopes(stored):
    for quantity, section in (("seconds", "times"), ("bytes", "memory")):
        kinds = list(KINDS)
        (axes,) = table_plots.growth_over_n(stored, quantity, 64, kinds).axes
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert [label.split(":")[0] for label in labels] == kinds
        curve = axes.lines[0]
        assert list(curve.get_xdata()) == stored["settings"]["lengths"]
        first = next(row for row in stored[section] if row["d"] == 64)
        assert curve.get_ydata()[0] == (median(first["seconds"]) if quantity == "seconds" else first["bytes"])
        guide = axes.lines[1]
        (fit,) = [r for r in stored["slopes"] if (r["kind"], r["along"], r["at"]) == (kinds[0], "n", 64)]
        predicted = fit["all"] if quantity == "seconds" else fit["bytes_predicted"]
        assert measuring.slope(guide.get_xdata(), guide.get_ydata()) == pytest.approx(predicted)


def test_operations_cross_where_the_terms_do(stored):
    paper, everything = table_plots.operations_over_n(stored, 512, ["self-attention", "recurrent"]).axes
    at = stored["settings"]["lengths"].index(512)
    first, second = (line.get_ydata()[at] for line in paper.lines)
    assert first == second
    assert all(a > b for a, b in zip(*(line.get_ydata() for line in everything.lines), strict=True))


def test_the_claim_is_drawn_as_ratios(stored):
    (axes,) = table_plots.claimed_ratios(stored).axes
    numbers = [text.get_text() for text in axes.texts]
    assert numbers[:2] == ["10", "10"], "by the terms of Table 1 a recurrent layer costs ten times as much"
    assert numbers[4] == "0.48", "with all products counted it costs half"


def test_paths_and_generation_are_drawn(stored):
    (axes,) = table_plots.path_lengths(stored).axes
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {row["kind"] for row in stored["paths"]}
    for formula, measured in zip(axes.lines[::2], axes.lines[1::2], strict=True):
        assert list(formula.get_ydata()) == list(measured.get_ydata())
    left, right = table_plots.training_and_generating(stored).axes
    assert len(left.lines) == len(right.lines) == 3
    assert list(right.lines[0].get_xdata()) == stored["settings"]["generated"]
