"""What lesson 11 builds is what the package has, and what PyTorch counts: lifted out and compared on random sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support_notebooks import lifted

from tinytransformer import TransformerConfig
from tinytransformer.experiments import measuring
from tinytransformer.experiments.costs import products, training_operations
from tinytransformer.experiments.layer_kinds import KINDS, travelling
from tinytransformer.experiments.paper import Training
from tinytransformer.experiments.table3 import spread
from tinytransformer.text.corpus import microworld_trees
from tinytransformer.text.trees import Tree, delinearise, linearise
from tinytransformer.translation.bracketing import bracketing

LESSON = lifted("11_tables")
WAYS = travelling(kernels=(2, 3), d=4)
TREES = microworld_trees("valid", 40, seed=1)
sizes = st.integers(1, 40)


def assert_the_counts_are_the_packages(built: dict, n: int, d: int) -> None:
    for kind, parts in built["layer_products"](n, d).items():
        assert parts == KINDS[kind].products(n, d)


def assert_the_paths_are_the_packages(built: dict, n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    for outputs, _ in WAYS.values():
        assert built["path_length"](outputs, n, 4) == measuring.path_length(outputs, n, 4, generator)


def assert_the_model_is_the_packages(built: dict, heads: int, d_k: int, d_ff: int, layers: int, n: int) -> None:
    sizes = {"d_model": heads * d_k, "d_ff": d_ff, "num_layers": layers, "vocab_size": 50}
    config = TransformerConfig(num_heads=heads, **sizes)
    parts = built["model_products"](heads * d_k, d_ff, layers, 50, n)
    theirs = products(config, n, n)
    assert sum(parts.values()) == sum(theirs.values())
    assert parts["encoder"] == sum(count for name, count in theirs.items() if name.startswith("encoder"))
    assert parts["output"] == theirs["output"]
    training = Training(hours=1.0, steps=7, operations=1.0, source_tokens=100, target_tokens=100)
    total = built["training_operations"](sum(parts.values()), n, 700)
    assert total == pytest.approx(training_operations(config, training, n))


def assert_the_scores_are_the_packages(built: dict, seed: int, lost: float) -> None:
    """Lines of the microworld's trees that lose symbols at random."""
    generator = torch.Generator().manual_seed(seed)
    spoilt = []
    for tree in TREES:
        kept = [symbol for symbol in linearise(tree).split() if torch.rand(1, generator=generator) >= lost]
        spoilt.append(delinearise(" ".join(kept), tree.words()))
    theirs = bracketing(TREES, spoilt)
    ours = built["labelled_f1"]([tree.nested() for tree in TREES], [one.tree.nested() for one in spoilt])
    assert ours == pytest.approx((theirs.precision, theirs.recall, theirs.f1))


def assert_the_rules_are_evalbs(built: dict) -> None:
    """TOP and ROOT, particles, punctuation, a constituent twice, other words."""
    the, end = Tree("DT", word="the"), Tree(".", word=".")
    doubled = Tree("VP", (Tree("VP", (the,)),))
    gold = [
        Tree("TOP", (Tree("S", (Tree("PRT", (the,)), doubled, Tree("X", (end,)))),)),
        Tree("S", (doubled, end)),
        Tree("S", (the, end)),
    ]
    found = [
        delinearise("(ROOT (S (ADVP XX )ADVP (VP XX )VP XX )S )ROOT", gold[0].words()),
        delinearise("(S (VP (VP (VP XX )VP )VP )VP XX )S", gold[1].words()),
        delinearise("(S XX XX )S", ["other", "words"]),
    ]
    theirs = bracketing(gold, found)
    assert (theirs.errors, theirs.matched, theirs.gold, theirs.predicted) == (1, 6, 7, 7)
    ours = built["labelled_f1"]([tree.nested() for tree in gold], [one.tree.nested() for one in found])
    assert ours == pytest.approx((theirs.precision, theirs.recall, theirs.f1))


def assert_the_verdicts_are_right(built: dict) -> None:
    """The noise is that of a difference of two means of three, and one row that went astray does not change it."""
    rows = torch.randn(20_000, 3, generator=torch.Generator().manual_seed(1)).mul(1.5).tolist()
    for row in rows[:3]:
        assert built["mean_and_spread"](row) == pytest.approx(spread(row))
    means = torch.tensor(rows).mean(1)
    noise = built["noise_of"](rows)
    assert noise == pytest.approx(2 * float((means[::2] - means[1::2]).std()), rel=0.03)
    assert built["noise_of"]([*rows[:99], [0.0, 0.0, 1e6]]) == pytest.approx(built["noise_of"](rows[:100]), rel=0.05)
    verdict = built["verdict"]
    assert verdict(0.9, -3.0, 1.0, 0.1) == verdict(-1.0, -3.0, 1.0, 0.1) == "within the noise"
    assert verdict(-1.1, -0.3, 1.0, 0.1) == verdict(1.1, 0.3, 1.0, 0.1) == "agrees"
    assert verdict(1.1, -0.3, 1.0, 0.1) == verdict(-1.1, 0.3, 1.0, 0.1) == "disagrees"
    assert verdict(1.1, 25.7 - 25.8, 1.0, 0.1) == verdict(-1.1, 0.0, 1.0, 0.1) == "the paper sees none"


def assert_all_tools_are_the_packages(built: dict) -> None:
    assert_the_counts_are_the_packages(built, 5, 7)
    assert_the_paths_are_the_packages(built, 9)
    assert_the_model_is_the_packages(built, 2, 3, 5, 2, 11)
    assert [built["linearise"](tree.nested()) for tree in TREES] == [linearise(tree) for tree in TREES]
    assert_the_scores_are_the_packages(built, 1, 0.1)
    assert_the_rules_are_evalbs(built)
    assert_the_verdicts_are_right(built)


def test_tools_of_lesson_11():
    assert_all_tools_are_the_packages(LESSON)


@given(n=sizes, d=sizes)
def test_counts_of_lesson_11(n, d):
    assert_the_counts_are_the_packages(LESSON, n, d)


@given(n=st.integers(2, 24))
def test_paths_of_lesson_11(n):
    assert_the_paths_are_the_packages(LESSON, n)


def test_a_path_that_never_arrives_is_an_error():
    def stays(x):
        while True:
            yield 2 * x

    with pytest.raises(ValueError, match="6 layers are not enough: does each of them move on"):
        LESSON["path_length"](stays, 6, 2)


@given(heads=st.integers(1, 4), d_k=st.integers(1, 8), d_ff=sizes, layers=st.integers(1, 5), n=sizes)
def test_models_of_lesson_11(heads, d_k, d_ff, layers, n):
    assert_the_model_is_the_packages(LESSON, heads, 2 * d_k, d_ff, layers, n)


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.5, 1.0])
def test_labelled_f1_of_lesson_11(lost):
    assert_the_scores_are_the_packages(LESSON, 2, lost)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"projections": 4 *', '"projections": 3 *'),
        ("2 * pairs", "pairs"),
        ("kernel * square", "square"),
        ("range(1, n + 1)", "range(2, n + 1)"),
        ("[0, -1].sum()", "[0, 0].sum()"),
        ("2 * attention + feed_forward", "attention + feed_forward"),
        ("2 * 3 * forward", "2 * forward"),
        ("(len(scores) - 1)", "len(scores)"),
        ("(1 / 3 + 1 / 3)", "(1 / 3)"),
        (" / math.log(2)", ""),
        ("ours * theirs > 0", "ours * theirs < 0"),
        ("1.001 * digit", "0.0"),
        ('f"){label}"', '")"'),
        ('("TOP", "ROOT")', '("TOP",)'),
        ('"ADVP" if label == "PRT" else label', "label"),
        ("place > first and ", ""),
        ("place + next(marks)", "place + 1"),
        ("Counter(brackets", "set(brackets"),
        ("continue  #", "pass  #"),
        ("200 * matched", "100 * matched"),
    ],
)
def test_a_change_in_the_tools_is_noticed(old, new):
    changed = lifted("11_tables", lambda source: source.replace(old, new))
    with pytest.raises((AssertionError, AttributeError)):
        assert_all_tools_are_the_packages(changed)
