"""Trees are read as treebanks write them, written as they were, and turned into a line of symbols and back."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytransformer.text.corpus import CorpusError, microworld_trees, parsing_pairs, penn_trees
from tinytransformer.text.microworld import generate
from tinytransformer.text.trees import Parse, Tree, TreeError, delinearise, linearise, read_trees, tree_of

TREEBANK = """\
* a file as it may be found (this line is a comment)

( (S (NP-SBJ-1 (NNP Mr.) (NNP Vinken))
     (VP (VBZ is)
         (NP-PRD (NN chairman)) (: --) (# #) (-LRB- -LRB-)))
)
(FRAG=2 (NP (CD 3) (NN
% ))) (S (NP-SBJ (-NONE- *T*-1)) (VP (VB go) (SBAR (-NONE- 0) (S (-NONE- *T*-2)))))
# another comment
( (SBAR (-NONE- 0) (S (-NONE- *))) )
((INTJ (UH no)) (. .))
(NN word)
"""
READ = [
    "(S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ is) (NP (NN chairman)) (: --) (# #) (-LRB- -LRB-)))",
    "(FRAG (NP (CD 3) (NN %)))",
    "(S (VP (VB go)))",
    "(TOP (INTJ (UH no)) (. .))",
    "(TOP (NN word))",
]
SENTENCE = tree_of("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))")
WORDS = ["John", "has", "a", "dog", "."]
LINE = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"

labels = st.sampled_from(["S", "NP", "VP", "SBAR", "X"])
leaves = st.builds(Tree, st.sampled_from(["NN", "DT", "."]), word=st.sampled_from(["dog", "a", "--", "XX"]))
trees = st.recursive(
    st.builds(lambda label, leaf: Tree(label, (leaf,)), labels, leaves),
    lambda inner: st.builds(Tree, labels, st.lists(inner | leaves, min_size=1, max_size=4).map(tuple)),
)


def test_a_treebank_file_is_read_without_traces_and_functions():
    assert [str(tree) for tree in read_trees(TREEBANK.splitlines())] == READ


@pytest.mark.parametrize("ending", ["mrg", "mrg.gz"])
def test_a_treebank_becomes_a_corpus_of_words_and_lines(tmp_path, ending):
    path = tmp_path / f"trees.{ending}"
    path.write_bytes(gzip.compress(TREEBANK.encode()) if ending.endswith("gz") else TREEBANK.encode())
    corpus = parsing_pairs(penn_trees(path), "mine")
    assert corpus.source[0] == "Mr. Vinken is chairman -- # -LRB-"
    assert corpus.target[0] == "(S (NP XX XX )NP (VP XX (NP XX )NP XX XX XX )VP )S"
    assert len(corpus) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a)\n(S (NN b))\n", r"^mine: the tree that begins in line 1 is not closed at the end of the text"),
        ("(S (NN a))\n\n )", r"^mine, line 3: a closing bracket closes nothing"),
        ("(S (NN a))\nand (S (NN b))", r"^mine, line 2: 'and' stands outside of every tree; a comment begins with #"),
        ("(S\n (NP the dog))", r"^mine, line 2: the word 'dog' has no tag of its own: write it as \(TAG dog\)"),
        ("(NP (DT the) dog)", r"^mine, line 1: the word 'dog' has no tag"),
        ("(NP the (NN dog))", r"^mine, line 1: the word 'the' has no tag"),
        ("(S (NP) (NN a))", r"^mine, line 1: the bracket 'NP' holds nothing"),
        ("(S ((NN a)))", r"^mine, line 1: a bracket inside a tree has no label: only the outermost may have none"),
    ],
)
def test_text_that_is_no_tree_is_refused_with_its_line(text, message):
    with pytest.raises(TreeError, match=message):
        list(read_trees(text.splitlines(), "mine"))


def test_files_without_trees(tmp_path):
    (tmp_path / "empty.mrg").write_text("# nothing\n")
    with pytest.raises(CorpusError, match=r"empty\.mrg holds no tree"):
        penn_trees(tmp_path / "empty.mrg")
    (tmp_path / "open.mrg").write_text("(S (NN a)")
    with pytest.raises(TreeError, match=r"open\.mrg: the tree that begins in line 1"):
        penn_trees(tmp_path / "open.mrg")
    with pytest.raises(TreeError, match=r"'\(S \(NN a\)\) \(S \(NN b\)\)' holds 2 trees: give one"):
        tree_of("(S (NN a)) (S (NN b))")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tree("NP"), "'NP' must have children or a word, and not both"),
        (lambda: Tree("NP", (SENTENCE,), "dog"), "children or a word, and not both"),
        (lambda: Tree("NN", word="("), r"'\(' cannot stand in a tree: no spaces, and write brackets as -LRB-"),
        (lambda: Tree("NN", word=""), "'' cannot stand in a tree"),
        (lambda: Tree("N P", (SENTENCE,)), "'N P' cannot stand in a tree"),
        (lambda: delinearise(LINE, []), "a tree without words cannot be made"),
    ],
)
def test_trees_that_cannot_be(make, message):
    with pytest.raises(TreeError, match=message):
        make()


@given(trees)
def test_written_trees_are_read_again(tree):
    assert tree_of(str(tree)) == tree


def shape(tree: Tree):
    """A tree without its tags, by recursion: labels and words alone."""
    return tree.word if tree.word is not None else (tree.label, [shape(child) for child in tree.children])


@given(trees)
def test_a_line_of_symbols_and_the_words_give_the_tree_back(tree):
    parse = delinearise(linearise(tree), tree.words())
    assert not parse.malformed
    assert shape(parse.tree) == shape(tree)
    assert {leaf.label for leaf in parse.tree.leaves()} == {"XX"}


@given(trees.map(linearise))
def test_a_line_has_a_closing_bracket_for_each_opening_one(line):
    symbols = line.split()
    opened = [symbol[1:] for symbol in symbols if symbol[0] == "("]
    assert sorted(opened) == sorted(symbol[1:] for symbol in symbols if symbol[0] == ")")


def test_the_line_is_that_of_the_literature():
    assert linearise(SENTENCE) == LINE
    assert SENTENCE.nested() == (
        "S",
        [
            ("NP", [("NNP", "John")]),
            ("VP", [("VBZ", "has"), ("NP", [("DT", "a"), ("NN", "dog")])]),
            (".", "."),
        ],
    )


@pytest.mark.parametrize(
    ("line", "repaired", "repairs"),
    [
        (LINE, LINE, {}),
        # Two words too few: the last two become the last children of S.
        ("(S (NP XX )NP (VP XX XX )VP )S", "(S (NP XX )NP (VP XX XX )VP XX XX )S", {"words missing": 2}),
        ("(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX XX XX )S", LINE, {"words too many": 2}),
        # The end is missing: the bracket that is open is closed there.
        (LINE.removesuffix(" )S"), LINE, {"brackets not closed": 1}),
        # )VP comes while an NP is open inside: it closes both.
        (LINE.replace(" )NP )VP", " )VP"), LINE, {"brackets not closed": 1}),
        (LINE.replace("(VP", ")PP (VP"), LINE, {"closing brackets that fit nothing": 1}),
        (LINE.replace("(VP", "dog ( ) (S)NP (VP"), LINE, {"unknown symbols": 4}),
        (LINE.replace("(VP", "(PP )PP (VP"), LINE, {"constituents without a word": 1}),
        (
            "(NP XX )NP (VP XX XX XX XX )VP",
            "(TOP (NP XX )NP (VP XX XX XX XX )VP )TOP",
            {"not one outermost constituent": 1},
        ),
        ("", "(TOP XX XX XX XX XX )TOP", {"words missing": 5, "not one outermost constituent": 1}),
        # )TOP does not close what the rule itself has put around everything.
        (f"{LINE} )TOP", LINE, {"closing brackets that fit nothing": 1}),
        # Of two open NPs the inner one is closed.
        (
            "(NP XX (NP XX )NP XX XX XX )NP",
            "(NP XX (NP XX )NP XX XX XX )NP",
            {},
        ),
    ],
)
def test_malformed_lines_are_repaired_by_the_stated_rule(line, repaired, repairs):
    found = delinearise(line, WORDS)
    assert linearise(found.tree) == repaired
    assert found.repairs == repairs
    assert found.malformed == bool(repairs)
    assert found.tree.words() == WORDS


@given(st.lists(st.sampled_from("(S )S (NP )NP (VP )VP XX XX foo ( )".split()), max_size=30))
def test_any_text_gives_a_tree_over_the_words_and_only_trees_need_no_repair(symbols):
    text = " ".join(symbols)
    found = delinearise(text, WORDS)
    assert found.tree.words() == WORDS
    assert found.malformed == (linearise(found.tree) != text)
    again = delinearise(linearise(found.tree), WORDS)
    assert again == Parse(found.tree, {})


def test_deep_nesting_is_no_trouble():
    depth = 3000
    parse = delinearise("(S " * depth + "XX", ["word"])
    assert parse.repairs == {"brackets not closed": depth}
    assert str(parse.tree) == "(S " * depth + "(XX word)" + ")" * depth
    assert len(parse.tree.leaves()) == 1
    (read,) = read_trees([str(parse.tree)])
    assert linearise(read) == linearise(parse.tree)


@pytest.mark.parametrize("split", ["test", "test_long", "test_novel"])
def test_the_microworld_gives_its_trees(split):
    examples = list(generate(split, 50, seed=3))
    found = microworld_trees(split, 50, seed=3)
    assert [str(tree) for tree in found] == [example.tree for example in examples]
    assert [tree.words() for tree in found] == [example.source_words for example in examples]
    corpus = parsing_pairs(found, "trees")
    for source, target, tree in zip(corpus.source, corpus.target, found, strict=True):
        assert source.split() == tree.words()
        assert linearise(delinearise(target, source.split()).tree) == target
