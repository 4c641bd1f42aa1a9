"""Loading the lexicon from ``data/microworld``: every line is checked, a wrong one is refused with a remedy."""

from functools import cache
from importlib.resources.abc import Traversable

from tinytransformer.resources import data_folder
from tinytransformer.text.microworld.entries import (
    PREPOSITIONS,
    Adjective,
    Adverb,
    Lexicon,
    Noun,
    PersonName,
    Reason,
    Verb,
)
from tinytransformer.text.microworld.tables import Row, Unique, read_table
from tinytransformer.text.microworld.verb_table import read_verbs


@cache
def embedded_lexicon() -> Lexicon:
    """The lexicon that comes with the package; read once."""
    return load_lexicon(data_folder("microworld"))


def load_lexicon(folder: Traversable) -> Lexicon:
    """The lexicon in a folder of tables; raises `LexiconError` for the first wrong line."""
    wider = _classes(folder)
    adjectives = _adjectives(folder, wider)
    adverbs = _adverbs(folder)
    verbs = read_verbs(folder, wider, adverbs)
    return Lexicon(
        nouns=_nouns(folder, wider),
        verbs=verbs,
        adjectives=adjectives,
        adverbs=adverbs,
        names=_names(folder),
        reasons=_reasons(folder, verbs, adjectives),
    )


def _classes(folder: Traversable) -> dict[str, frozenset[str]]:
    """Each class with itself and all wider classes; a parent stands above its children in the table."""
    wider: dict[str, frozenset[str]] = {}
    unique = Unique()
    for row in read_table(folder, "classes.csv"):
        name = row.required("class")
        unique.check(row, name, f"the class {name!r}")
        parents = row.each_of("parent", wider, "classes.csv, above this line")
        wider[name] = frozenset([name]).union(*(wider[parent] for parent in parents))
    return wider


def _form(row: Row, column: str) -> str | None:
    value = row.required(column)
    return None if value == "-" else value


def _prepositions(row: Row, column: str) -> tuple[str, str] | None:
    words = row.words(column)
    if not words:
        return None
    if len(words) != 2 or words[1] not in PREPOSITIONS:
        remedy = f"Write an English and a German preposition, for example: in in (German: {', '.join(PREPOSITIONS)})"
        raise row.error(f"{column} {row[column]!r} is not a pair of prepositions", remedy)
    return words[0], words[1]


def _noun(row: Row, wider: dict[str, frozenset[str]]) -> Noun:
    english = (_form(row, "english"), _form(row, "plural"))
    german = (_form(row, "german"), _form(row, "mehrzahl"))
    gender = row.one_of("gender", ("m", "f", "n", "p"))
    if not any(english) or not any(german):
        raise row.error("a language has neither singular nor plural", "Give at least one of the two forms")
    if (gender == "p") != (german[0] is None):
        raise row.error(
            f"gender {gender!r} does not fit the German singular {row['german']!r}",
            "Gender p is for nouns whose German singular is -, and only for them",
        )
    if english[0] and english[0] == english[1]:
        raise row.error(f"singular and plural are both {english[0]!r}", "Use a noun whose number can be seen")
    row.required("classes")
    classes = row.each_of("classes", wider, "classes.csv")
    return Noun(
        english=english,
        german=german,
        gender=gender,
        oblique=row["oblique"] or None,
        classes=frozenset().union(*(wider[name] for name in classes)),
        location=_prepositions(row, "location"),
        direction=_prepositions(row, "direction"),
    )


def _nouns(folder: Traversable, wider: dict[str, frozenset[str]]) -> tuple[Noun, ...]:
    nouns, unique = [], Unique()
    for row in read_table(folder, "nouns.csv"):
        noun = _noun(row, wider)
        for form in filter(None, noun.english):
            unique.check(row, form, f"the English noun {form!r}")
        nouns.append(noun)
    return tuple(nouns)


def _adjectives(folder: Traversable, wider: dict[str, frozenset[str]]) -> tuple[Adjective, ...]:
    adjectives, unique = [], Unique()
    for row in read_table(folder, "adjectives.csv"):
        english, german = row.required("english"), row.required("german")
        unique.check(row, english, f"the adjective {english!r}")
        row.required("classes")
        asked = row.words("classes")
        for name in asked:
            row.check_known(name.removeprefix("!"), "classes", wider, "classes.csv")
        adjectives.append(
            Adjective(
                english=english,
                german=german,
                stem=row["stem"] or german.removesuffix("e"),
                classes=frozenset(name for name in asked if not name.startswith("!")),
                excluded=frozenset(name[1:] for name in asked if name.startswith("!")),
                gradable=row.one_of("degree", ("", "no")) == "",
                attributive=row.one_of("position", ("", "after")) == "",
            )
        )
    return tuple(adjectives)


def _adverbs(folder: Traversable) -> tuple[Adverb, ...]:
    adverbs, unique = [], Unique()
    for row in read_table(folder, "adverbs.csv"):
        english, german, tags = row.words("english"), row.words("german"), row.words("tags")
        row.required("english")
        row.required("german")
        unique.check(row, row["english"], f"the adverbial {row['english']!r}")
        if len(tags) != len(english):
            raise row.error(f"{len(english)} English words but {len(tags)} tags", "Give one Penn tag for each word")
        adverbs.append(
            Adverb(
                english=tuple(english),
                german=tuple(german),
                tags=tuple(tags),
                links=_links(row, len(english), len(german)),
                kind=row.one_of("kind", ("time", "frequency", "never", "manner")),
                tense=row.one_of("tense", ("past", "present", "future", "any")),
            )
        )
    return tuple(adverbs)


def _links(row: Row, english: int, german: int) -> tuple[tuple[int, int], ...]:
    links = []
    for link in row.words("links"):
        left, _, right = link.partition("-")
        if not (left.isdigit() and right.isdigit() and 1 <= int(left) <= english and 1 <= int(right) <= german):
            raise row.error(f"the link {link!r} points nowhere", "Write English-German positions from 1, such as 1-2")
        links.append((int(left) - 1, int(right) - 1))
    if {i for i, _ in links} != set(range(english)) or {j for _, j in links} != set(range(german)):
        raise row.error("a word has no link", "Link every English and every German word, such as 1-1 2-1 3-2")
    return tuple(links)


def _names(folder: Traversable) -> tuple[PersonName, ...]:
    names, unique = [], Unique()
    for row in read_table(folder, "names.csv"):
        unique.check(row, row.required("name"), f"the name {row['name']!r}")
        names.append(PersonName(row["name"], row.one_of("gender", ("m", "f"))))
    return tuple(names)


def _reasons(folder: Traversable, verbs: tuple[Verb, ...], adjectives: tuple[Adjective, ...]) -> tuple[Reason, ...]:
    by_name = {adjective.english: adjective for adjective in adjectives}
    known = {verb.key for verb in verbs}
    reasons, unique = [], Unique()
    for row in read_table(folder, "reasons.csv"):
        key = row.required("verb")
        unique.check(row, key, f"the verb {key!r}")
        row.check_known(key, "verb", known, "verbs.csv")
        lists = [
            tuple(by_name[word] for word in row.each_of(column, by_name, "adjectives.csv"))
            for column in ("done_subject", "done_object", "undone_subject", "undone_object")
        ]
        reasons += [Reason(verb, *lists) for verb in verbs if verb.key == key]
    return tuple(reasons)
