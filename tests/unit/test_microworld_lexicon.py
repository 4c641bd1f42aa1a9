"""The lexicon: big enough, open to a teacher's line, closed to a wrong one."""

import shutil
from pathlib import Path

import pytest

from tinytransformer.resources import data_folder
from tinytransformer.text.microworld import LexiconError, generate
from tinytransformer.text.microworld.lexicon import embedded_lexicon, load_lexicon
from tinytransformer.text.microworld.world import World


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tables that a test may write to."""
    copy = tmp_path / "microworld"
    shutil.copytree(str(data_folder("microworld")), copy)
    return copy


def append(folder: Path, file: str, line: str) -> int:
    """Add a line to a table and return its number."""
    path = folder / file
    lines = [*path.read_text(encoding="utf-8").rstrip("\n").splitlines(), line]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def test_at_least_300_content_words():
    lexicon = embedded_lexicon()
    verbs = {verb.key for verb in lexicon.verbs}
    assert len(lexicon.nouns) + len(verbs) + len(lexicon.adjectives) + len(lexicon.adverbs) >= 350


def test_every_verb_finds_subject_and_objects():
    world = World(embedded_lexicon())
    assert not [
        (verb.key, role) for (verb, role), nouns in world.fillers.items() if not nouns and role not in ("that", "where")
    ]


def test_every_noun_can_be_used():
    world = World(embedded_lexicon())
    used = {noun for (_, role), nouns in world.fillers.items() for noun in nouns if role != "where"}
    assert not [noun.key for noun in world.lexicon.nouns if noun not in used]


def test_a_new_noun_and_verb_are_used(folder):
    append(folder, "nouns.csv", "penguin, penguins, Pinguin, m, Pinguine, , zoo")
    append(folder, "verbs.csv", "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, haben, person, acc zoo")
    text = [example.target for example in generate("train", 6000, world=World(load_lexicon(folder)))]
    assert any("Pinguin" in target for target in text)
    assert any("gekitzelt" in target for target in text)


def test_a_verb_without_enough_nouns_is_refused(folder):
    append(folder, "classes.csv", "robot,")
    append(folder, "nouns.csv", "android, androids, Androide, m, Androiden, Androiden, robot")
    line = "oil oiled oiled, ölen ölt ölte geölt, haben, robot, acc robot"
    number = append(folder, "verbs.csv", line)
    with pytest.raises(
        LexiconError, match=f"verbs.csv, line {number}: 1 nouns can be the subject of 'oil', but it takes 2"
    ):
        World(load_lexicon(folder))


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("nouns.csv", "penguin, penguins, Pinguin, x, Pinguine, , zoo", "unknown gender 'x'. Use one of: m, f, n, p"),
        ("nouns.csv", "penguin, penguins, Pinguin, m, , , zoo", "the column 'mehrzahl' is empty. Fill it in"),
        ("nouns.csv", "dog, doggies, Hündchen, n, Hündchen, , pet", "the English noun 'dog' is already in line"),
        ("nouns.csv", "penguin, penguins, Pinguin, m, Pinguine, , fish", "'fish' in the column 'classes' is unknown"),
        ("nouns.csv", "penguin, penguins, Pinguin, m, Pinguine, ,", "the column 'classes' is empty"),
        ("nouns.csv", "penguin, penguins, Pinguin, p, Pinguine, , zoo", "gender 'p' does not fit"),
        ("nouns.csv", "sheep, sheep, Schaf, n, Schafe, , farm", "singular and plural are both 'sheep'"),
        ("nouns.csv", "-, -, Pinguin, m, Pinguine, , zoo", "neither singular nor plural"),
        ("nouns.csv", "shed, sheds, Schuppen, m, Schuppen, , room, in", "not a pair of prepositions"),
        ("nouns.csv", "a, b, c, m, d, , zoo, in in, to in, more", "10 cells but only 9 columns"),
        (
            "verbs.csv",
            "tickle tickled, kitzeln kitzelt kitzelte gekitzelt, haben, person",
            "is not three English forms",
        ),
        ("verbs.csv", "tickle tickled tickled, kitzeln kitzelt gekitzelt, haben, person", "is not four German forms"),
        (
            "verbs.csv",
            "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, sien, person",
            "unknown auxiliary 'sien'",
        ),
        (
            "verbs.csv",
            "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, haben, men",
            "'men' in the column 'subject'",
        ),
        (
            "verbs.csv",
            "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, haben, , acc zoo",
            "'subject' is empty",
        ),
        (
            "verbs.csv",
            "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, haben, person, zoo",
            "the object 'zoo' is neither",
        ),
        (
            "verbs.csv",
            "tickle tickled tickled, kitzeln kitzelt kitzelte gekitzelt, haben, person, acc",
            "names no class",
        ),
        (
            "verbs.csv",
            "pick picked picked +up, ab|holen holt holte geholt, haben, person",
            "does not begin with the prefix 'ab'",
        ),
        ("verbs.csv", "help helped helped, helfen hilft half geholfen, haben, person", "is already in line"),
        ("adjectives.csv", "old, betagt, , person", "the adjective 'old' is already in line"),
        ("adjectives.csv", "spotted, gefleckt, , spots", "'spots' in the column 'classes' is unknown"),
        ("adverbs.csv", "at night, nachts, IN, 1-1 2-1, time, any", "2 English words but 1 tags"),
        ("adverbs.csv", "at night, nachts, IN NN, 1-1, time, any", "a word has no link"),
        ("adverbs.csv", "at night, nachts, IN NN, 1-1 2-2, time, any", "the link '2-2' points nowhere"),
        ("names.csv", "Robin, n", "unknown gender 'n'"),
        ("reasons.csv", "fly, tired, , ,", "'fly' in the column 'verb' is unknown"),
        ("classes.csv", "toad, amphibian", "'amphibian' in the column 'parent' is unknown"),
    ],
)
def test_a_wrong_line_is_refused_with_file_line_and_remedy(folder, file, line, message):
    number = append(folder, file, line)
    with pytest.raises(LexiconError) as refused:
        load_lexicon(folder)
    text = str(refused.value)
    assert text.startswith(f"{file}, line {number}: ")
    assert message in text
    assert text.count(". ") >= 1, "a remedy follows the problem"
