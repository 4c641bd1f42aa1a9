"""Labelled bracket scores: cases worked out by hand, evalb's own sample, and another way to compute them."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.text.corpus import microworld_trees, parsing_pairs
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.text.trees import Parse, Tree, delinearise, linearise, tree_of
from tinytransformer.translation.bracketing import PARSING, bracketing, mismatches, parse
from tinytransformer.translation.translator import Decoding, Translator


def scored(gold: str, predicted: str):
    return bracketing([tree_of(gold)], [Parse(tree_of(predicted))])


def counts(scores) -> tuple[int, int, int]:
    return scores.matched, scores.gold, scores.predicted


def test_a_wrong_attachment_by_hand():
    # Words 0 John, 1 saw, 2 a, 3 man, 4 with, 5 it; the full stop is not counted, so no span reaches beyond 6.
    # gold:       S 0-6, NP 0-1, VP 1-6, NP 2-4, PP 4-6, NP 5-6                     (6 constituents: "with it" at VP)
    # predicted:  S 0-6, NP 0-1, VP 1-6, NP 2-6, NP 2-4, PP 4-6, NP 5-6             (7: one NP more, around both)
    # matched 6; precision 6/7 = 85.71, recall 6/6 = 100, F1 = 2·6/(6 + 7) = 92.31
    gold = "(S (NP (NNP John)) (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (PRP it)))) (. .))"
    predicted = "(S (NP (NNP John)) (VP (VBD saw) (NP (NP (DT a) (NN man)) (PP (IN with) (NP (PRP it))))) (. .))"
    scores = scored(gold, predicted)
    assert counts(scores) == (6, 6, 7)
    assert (scores.precision, scores.recall) == (pytest.approx(600 / 7), 100.0)
    assert scores.f1 == pytest.approx(1200 / 13)
    assert (scores.exact, scored(gold, gold).exact) == (0.0, 100.0)
    # Of the predicted constituents, in the order in which they open, the fourth (number 3) is the wrong one.
    assert mismatches(tree_of(gold), tree_of(predicted)) == (set(), {3})


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        # A label wrong: S 0-2 and VP 1-2 match, NP 0-1 against PP 0-1 does not.
        ("(S (NP (A a)) (VP (B b)))", "(S (PP (A a)) (VP (B b)))", (2, 3, 3)),
        # The comma belongs to the NP or to the S: without it NP is 0-1 in both.
        ("(S (NP (A a)) (, ,) (VP (B b)))", "(S (NP (A a) (, ,)) (VP (B b)))", (3, 3, 3)),
        # A constituent of punctuation alone is not counted: gold has S and NP only.
        ("(S (NP (A a)) (PRN (: -) (. .)))", "(S (NP (A a)) (: -) (. .))", (2, 2, 2)),
        # Quotes go too; a dollar sign is a word: NP 0-2 against NP 1-2.
        ("(S (`` ``) (NP ($ $) (CD 3)) ('' ''))", "(S (`` ``) ($ $) (NP (CD 3)) ('' ''))", (1, 2, 2)),
        # The same label over the same words n = 2 and m = 1 times: one of them matches.
        ("(NP (NP (A a)))", "(NP (A a))", (1, 2, 1)),
        ("(NP (NP (NP (A a))))", "(NP (NP (A a)))", (2, 3, 2)),
        # PRT counts as ADVP, whichever of the two it is; TOP and ROOT do not count at all.
        ("(S (V go) (PRT (RP on)))", "(S (V go) (ADVP (RP on)))", (2, 2, 2)),
        ("(TOP (S (V go)))", "(S (V go))", (1, 1, 1)),
        ("(S (V go))", "(ROOT (S (V go)))", (1, 1, 1)),
        # The gold tags say what is punctuation: our parser tags every word XX.
        ("(S (NP (A a)) (. .))", "(S (NP (XX a)) (XX .))", (2, 2, 2)),
        ("(S (NP (A a)) (. .))", "(S (NP (XX a) (XX .)))", (2, 2, 2)),
    ],
)
def test_the_rules_of_evalb_one_by_one(gold, predicted, expected):
    assert counts(scored(gold, predicted)) == expected


# evalb's own sample (sample.gld, sample.tst and sample.rsl of its distribution, which is in the public domain):
# one gold tree, trees to be scored, and the numbers that evalb prints: matched, gold, test.
SAMPLE = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
EVALB = {
    "(S (A (P this)) (B (Q is) (A (R a) (T test))))": (4, 4, 4),
    "(S (A (P this)) (B (Q is) (C (R a) (T test))))": (3, 4, 4),
    "(S (A (P this)) (B (Q is) (A (R a) (U test))))": (4, 4, 4),
    "(S (C (P this)) (B (Q is) (A (R a) (U test))))": (3, 4, 4),
    "(S (A (P this)) (B (Q is) (R a) (A (T test))))": (3, 4, 4),
    "(S (A (P this) (Q is)) (A (R a) (T test)))": (2, 4, 3),
    "(S (P this) (Q is) (R a) (T test))": (1, 4, 1),
    "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))": (4, 4, 5),
    "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))": (4, 4, 8),
    "(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))": (4, 4, 4),
}
EVALB_ERRORS = (
    "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))",
    "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))",
)


@pytest.mark.parametrize(("predicted", "expected"), EVALB.items())
def test_the_numbers_that_evalb_prints_for_its_own_sample(predicted, expected):
    assert counts(scored(SAMPLE, predicted)) == expected


def test_a_corpus_is_scored_by_its_sums_and_errors_are_in_none():
    trees = [*EVALB, *EVALB_ERRORS]
    scores = bracketing([tree_of(SAMPLE)] * len(trees), [Parse(tree_of(one)) for one in trees])
    # Sums of the ten rows above: matched 32, gold 40, test 41; three of the ten are complete: 1, 3 and 10.
    assert counts(scores) == (32, 40, 41)
    assert (scores.sentences, scores.errors, scores.complete) == (12, 2, 3)
    assert scores.recall == pytest.approx(100 * 32 / 40)
    assert scores.precision == pytest.approx(100 * 32 / 41)
    assert scores.f1 == pytest.approx(2 * scores.precision * scores.recall / (scores.precision + scores.recall))
    assert scores.exact == pytest.approx(100 * 3 / 10)


def test_malformed_outputs_are_counted_and_scored_as_repaired():
    gold = tree_of("(S (NP (A a)) (VP (B b)))")
    outputs = ["(S (NP XX )NP (VP XX )VP )S", "(S (NP XX )NP (VP XX )VP", "", "(S (NP XX )NP (VP XX XX )VP )S"]
    scores = bracketing([gold] * 4, [delinearise(text, gold.words()) for text in outputs])
    # All but the third give the gold tree; the third is flat under TOP, which does not count: 0 constituents.
    assert (scores.malformed, scores.errors, scores.complete) == (3, 0, 3)
    assert counts(scores) == (9, 12, 9)


@pytest.mark.parametrize(
    ("gold", "parses", "message"),
    [
        ([], [], "nothing to score: give at least one tree"),
        ([tree_of("(S (A a))")], [], "0 parses but 1 gold trees: give one for each"),
    ],
)
def test_bad_input(gold, parses, message):
    with pytest.raises(ValueError, match=message):
        bracketing(gold, parses)


def brute_force(gold: str, predicted: str) -> tuple[int, int, int]:
    """Another way: cut punctuation out of the gold text, replace the same places in the other, and match lists."""
    leaf = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
    marks = [tag in (",", ":", "``", "''", ".") for tag, _ in leaf.findall(gold)]
    sides = []
    for text in (gold, predicted):
        places = iter(marks)
        text = leaf.sub(lambda found, places=places: "" if next(places) else "#", text)
        spans = []
        while (inner := re.search(r"\(([^\s()]+)([^()]*)\)", text)) is not None:
            label, inside = inner[1], inner[2].replace(" ", "")
            first = text[: inner.start()].count("#")
            if inside and label not in ("TOP", "ROOT"):
                spans.append(("ADVP" if label == "PRT" else label, first, first + inside.count("#")))
            text = text[: inner.start()] + inside + text[inner.end() :]
        sides.append(spans)
    matched, rest = 0, list(sides[1])
    for span in sides[0]:
        if span in rest:
            rest.remove(span)
            matched += 1
    return matched, len(sides[0]), len(sides[1])


@st.composite
def two_trees_of_one_sentence(draw) -> tuple[Tree, Tree]:
    """Random trees over the same words, with punctuation, unary chains and the special labels."""
    tags = draw(st.lists(st.sampled_from(["N", "V", ",", ".", "``"]), min_size=1, max_size=7))
    words = [Tree(tag, word=f"w{place}") for place, tag in enumerate(tags)]
    label = st.sampled_from(["S", "NP", "ADVP", "PRT", "TOP"])

    def grown(parts: list[Tree]) -> Tree:
        for _ in range(draw(st.integers(1, 7))):
            first = draw(st.integers(0, len(parts) - 1))
            last = draw(st.integers(first, len(parts) - 1)) + 1
            parts = [*parts[:first], Tree(draw(label), tuple(parts[first:last])), *parts[last:]]
        return Tree("S", tuple(parts))

    return grown(words), grown(words)


@given(two_trees_of_one_sentence())
def test_another_way_to_compute_it_gives_the_same(pair):
    gold, predicted = pair
    expected = brute_force(str(gold), str(predicted))
    assert counts(bracketing([gold], [Parse(predicted)])) == expected
    missed, wrong = mismatches(gold, predicted)
    assert (expected[1] - len(missed), expected[2] - len(wrong)) == (expected[0], expected[0])


def test_a_tree_equals_itself_and_sides_are_exchangeable():
    trees = microworld_trees("test", 30, seed=2)
    perfect = bracketing(trees, [delinearise(linearise(tree), tree.words()) for tree in trees])
    assert (perfect.f1, perfect.exact, perfect.malformed, perfect.errors) == (100.0, 100.0, 0, 0)
    one = scored("(S (NP (A a)) (VP (B b)))", "(S (A a) (VP (B b)))")
    other = scored("(S (A a) (VP (B b)))", "(S (NP (A a)) (VP (B b)))")
    assert (one.precision, one.recall) == (other.recall, other.precision)


def test_a_translator_is_a_parser_whatever_it_writes():
    """A model without training writes nonsense; it is decoded as in the paper and repaired into trees."""
    trees = microworld_trees("test", 12, seed=1)
    corpus = parsing_pairs(trees, "trees")
    symbols = sorted({symbol for line in corpus.target for symbol in line.split()})
    tokenizer = Tokenizer.train([*corpus.source, *corpus.target], 150, symbols)
    torch.manual_seed(3)
    config = TransformerConfig(len(tokenizer), d_model=16, num_heads=2, d_ff=16, num_layers=1, max_length=64)
    translator = Translator(Transformer(config), tokenizer)
    sentences = [tree.words() for tree in trees]
    for decoding in (Decoding(beam=1, extra=20), Decoding(beam=3, alpha=0.3, extra=20)):
        parses = parse(translator, sentences, decoding)
        scores = bracketing(trees, parses)
        assert [one.tree.words() for one in parses] == sentences
        assert (scores.errors, scores.malformed) == (0, 12)
    assert (PARSING.beam, PARSING.alpha, PARSING.extra) == (21, 0.3, 300)
