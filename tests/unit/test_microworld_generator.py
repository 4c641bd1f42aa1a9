"""The generator: splits, determinism, annotations and the share of each construction."""

import hashlib
import importlib.util
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tinytransformer.text.microworld import CONSTRUCTIONS, SPLITS, generate
from tinytransformer.text.microworld.splits import held_out_combination, held_out_pair

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"train": 20_000, "valid": 1000, "test": 1000, "test_long": 600, "test_novel": 1000, "test_pronoun": 1000}
MARKS = {",", ".", "?"}
ANAPHORIC = {"he", "she", "it", "they", "him", "her", "them"}
CONTENT_TAGS = re.compile(r"^(NN|NNS|NNP|JJ|VB.?|CD|PRP|RP)$")


@pytest.fixture(scope="module")
def corpus():
    return {split: list(generate(split, count, seed=3)) for split, count in COUNTS.items()}


@pytest.fixture(scope="module")
def everything(corpus):
    return [example for examples in corpus.values() for example in examples]


def test_splits_are_disjoint_whatever_the_seed(corpus):
    sources = {split: {example.source for example in examples} for split, examples in corpus.items()}
    for split, count in COUNTS.items():
        sources[split] |= {example.source for example in generate(split, count // 2, seed=4)}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not sources[one] & sources[other], f"{one} and {other} share sentences"


def test_one_translation_for_each_sentence(everything):
    targets = {}
    for example in everything:
        assert targets.setdefault(example.source, example.target) == example.target


def test_lengths(corpus):
    for split, examples in corpus.items():
        low, high = (25, 40) if split == "test_long" else (4, 24)
        for example in examples:
            words = [word for word in example.source_words if word not in MARKS]
            assert low <= len(words) <= len(example.source_words) <= high, example.source


def test_same_seed_same_text_in_every_process():
    code = (
        "import hashlib; from tinytransformer.text.microworld import SPLITS, generate\n"
        "lines = [repr(e.to_dict()) for s in SPLITS for e in generate(s, 60, seed=1)]\n"
        "print(hashlib.sha256('\\n'.join(lines).encode()).hexdigest())"
    )
    digests = set()
    for hash_seed in ("0", "1", "12345"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1
    lines = [repr(example.to_dict()) for split in SPLITS for example in generate(split, 60, seed=1)]
    assert digests == {hashlib.sha256("\n".join(lines).encode()).hexdigest() + "\n"}


def test_seeds_differ_and_longer_streams_continue_shorter_ones():
    first = [example.source for example in generate("train", 50, seed=1)]
    assert first == [example.source for example in generate("train", 80, seed=1)][:50]
    assert first != [example.source for example in generate("train", 50, seed=2)]


def test_links_are_in_range_and_every_content_word_is_linked(everything):
    for example in everything:
        tags = re.findall(r"\((\S+) [^\s()]+\)", example.tree)
        left, right = {i for i, _ in example.alignment}, {j for _, j in example.alignment}
        assert left <= set(range(len(example.source_words)))
        assert right <= set(range(len(example.target_words)))
        assert example.alignment == sorted(map(list, {tuple(link) for link in example.alignment}))
        unlinked = [w for i, w in enumerate(example.source_words) if i not in left and CONTENT_TAGS.match(tags[i])]
        assert not unlinked, f"{unlinked} in {example.source}"
        # In German every word is linked; only commas, which English sets differently, may stand alone.
        assert {w for j, w in enumerate(example.target_words) if j not in right} <= {","}, example.target
        assert [len(example.source_words) - 1, len(example.target_words) - 1] in example.alignment


def test_tree_leaves_are_the_words_and_brackets_balance(everything):
    for example in everything:
        assert re.findall(r" ([^\s()]+)\)", example.tree) == example.source_words
        depth = 0
        for position, character in enumerate(example.tree):
            depth += {"(": 1, ")": -1}.get(character, 0)
            assert depth > 0 or position == len(example.tree) - 1, "one tree, closed at its end"
        assert depth == 0
        assert re.match(r"\((S|SQ|SBARQ) ", example.tree)
        assert not re.search(r"\(\)|\( |  | \)", example.tree)


def test_text_is_the_words_with_natural_spacing(everything):
    for example in everything:
        for text, words in ((example.source, example.source_words), (example.target, example.target_words)):
            assert re.findall(r"\w+|[,.?]", text) == words
            assert text[0].isupper()
            assert not re.search(r"\s[,.?]|,,|\s\s|,\.", text)


def test_every_construction_is_frequent_in_training(corpus):
    counts = Counter(name for example in corpus["train"] for name in example.constructions)
    shares = {name: counts[name] / len(corpus["train"]) for name in CONSTRUCTIONS}
    assert min(shares.values()) >= 0.035, shares
    assert set(counts) == set(CONSTRUCTIONS)


def test_pronouns_point_at_pronoun_and_antecedent(everything):
    for example in everything:
        tags = re.findall(r"\((\S+) [^\s()]+\)", example.tree)
        words = [word.lower() for word in example.source_words]
        marked = {pronoun["position"] for pronoun in example.pronouns}
        assert marked == {i for i, word in enumerate(words) if word in ANAPHORIC}
        assert ("pronoun" in example.constructions) == bool(marked)
        for pronoun in example.pronouns:
            assert pronoun["antecedent"] < pronoun["position"]
            assert tags[pronoun["antecedent"]] in ("NN", "NNS", "NNP")
            linked = [example.target_words[j] for i, j in example.alignment if i == pronoun["position"]]
            assert [word.lower() for word in linked] == [pronoun["target"]]


def test_held_out_combinations_only_in_test_novel(corpus):
    for split, examples in corpus.items():
        for example in examples:
            novel = [pair for pair in example.combinations if held_out_combination(*pair)]
            assert bool(novel) == (split == "test_novel"), (split, example.source, novel)


def test_held_out_adjective_and_noun_never_meet_in_the_text_of_train(corpus):
    """The same from the trees alone, for adjectives before nouns."""
    seen = {split: set() for split in SPLITS}
    for split, examples in corpus.items():
        for example in examples:
            pairs = re.findall(r"\(JJ (\w+)\) \(NN (\w+)\)", example.tree)
            seen[split] |= {(adjective.lower(), noun) for adjective, noun in pairs if noun != "week"}
    novel = {pair for pair in seen["test_novel"] if held_out_combination(*pair)}
    assert len(novel) >= 20
    assert not novel & set().union(*(pairs for split, pairs in seen.items() if split != "test_novel"))


def test_held_out_noun_pairs_only_in_test_pronoun(corpus):
    for split, examples in corpus.items():
        for example in examples:
            pairs = [pair for pair in itertools.combinations(example.nouns, 2) if held_out_pair(*pair)]
            assert bool(pairs) == (split == "test_pronoun"), (split, example.source)


def test_contrastive_pairs(corpus):
    examples = corpus["test_pronoun"]
    subject_right = 0
    for one, other in zip(examples[::2], examples[1::2], strict=True):
        differing = [(a, b) for a, b in zip(one.source_words, other.source_words, strict=True) if a != b]
        assert len(differing) == 1, (one.source, other.source)
        assert one.pronouns[-1]["position"] == other.pronouns[-1]["position"]
        assert one.pronouns[-1]["antecedent"] != other.pronouns[-1]["antecedent"]
        assert one.pronouns[-1]["target"] != other.pronouns[-1]["target"]
        # The subject of the first clause is the first noun of the sentence, as an adjective may stand before it.
        for example in (one, other):
            first = min(
                i for i, tag in enumerate(re.findall(r"\((\S+) [^\s()]+\)", example.tree)) if tag.startswith("NN")
            )
            subject_right += example.pronouns[-1]["antecedent"] == first
    assert subject_right / len(examples) <= 0.55
    assert subject_right / len(examples) >= 0.25


def test_contrastive_pairs_cover_they_and_them(corpus):
    words = Counter(example.source_words[example.pronouns[-1]["position"]] for example in corpus["test_pronoun"])
    assert set(words) == {"it", "they", "them"}
    assert min(words.values()) >= 10, words


def test_several_people_do_not_share_what_is_theirs(corpus):
    """What two readings of the corpus faulted stays away: *we … my*, several people in one coat."""
    for example in corpus["train"]:
        text = example.source
        assert not re.search(r"^We (?!know|say)\w+ my\b", text), text
        assert not re.search(
            r"\b(parents|people|men|women|children) (put on|took off|wear|tried on) (a|this) ", text
        ), text


def test_a_verb_with_one_form_for_present_and_past_shows_its_tense(corpus):
    """*They read the book* could be either."""
    for example in corpus["train"]:
        for before in re.findall(r"\(NNS \w+\)\) \(VP \((VB[PD]) (?:read|put|shut)\)", example.tree):
            assert "clause_als" in example.constructions, (before, example.source)


def test_training_cannot_be_solved_by_one_antecedent(corpus):
    """Of the training pronouns *it*, neither the first noun nor the last one before it is right nearly always."""
    first = last = total = 0
    for example in corpus["train"]:
        tags = re.findall(r"\((\S+) [^\s()]+\)", example.tree)
        for pronoun in example.pronouns:
            if example.source_words[pronoun["position"]] == "it":
                nouns = [i for i, tag in enumerate(tags[: pronoun["position"]]) if tag in ("NN", "NNS")]
                first += pronoun["antecedent"] == nouns[0]
                last += pronoun["antecedent"] == nouns[-1]
                total += 1
    assert total > 500
    assert first / total < 0.6
    assert last / total < 0.8


@pytest.mark.parametrize(
    ("split", "count", "message"), [("dev", 1, "unknown split 'dev'"), ("train", -1, "count is -1")]
)
def test_bad_requests_are_refused(split, count, message):
    with pytest.raises(ValueError, match=message):
        generate(split, count)


def test_ten_million_distinct_training_sentences_are_possible(corpus):
    """Counted for one pattern alone. Nine of ten are for training; held-out words take away less than half."""
    spec = importlib.util.spec_from_file_location("benchmark", ROOT / "benchmarks" / "microworld.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    assert benchmark.sentences_of_one_pattern() * 0.9 / 2 > 1e7
    sources = [example.source for example in corpus["train"]]
    assert len(set(sources)) > 0.98 * len(sources)
