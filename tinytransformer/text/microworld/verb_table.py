"""Reading ``verbs.csv``: the forms of a verb and what it may be combined with."""

from importlib.resources.abc import Traversable

from tinytransformer.text.microworld.entries import PREPOSITIONS, Adverb, Slot, Verb
from tinytransformer.text.microworld.tables import Row, Unique, read_table

_ROLES = {"acc": "accusative", "dat": "dative", "to": "direction", "at": "location"}
_FLAGS = (
    "definite", "indefinite", "many", "one", "plain", "made", "own", "each",
    "known", "state", "lasting", "event", "wish", "ahead", "unasked", "aside", "handy",
)  # fmt: skip


def read_verbs(folder: Traversable, classes, adverbs: tuple[Adverb, ...]) -> tuple[Verb, ...]:
    """The verbs of a folder; an English verb may come twice (eat: essen, fressen) with different German verbs."""
    manners = {adverb.english[0] for adverb in adverbs if adverb.kind == "manner"}
    verbs, unique = [], Unique()
    for row in read_table(folder, "verbs.csv"):
        verb = _verb(row, classes, manners)
        unique.check(
            row, (verb.key, verb.prefix, verb.infinitive), f"the verb {verb.key} – {verb.prefix}{verb.infinitive}"
        )
        verbs.append(verb)
    return tuple(verbs)


def _verb(row: Row, classes, manners) -> Verb:
    base, past, participle, particle, preposition = _english_forms(row)
    reflexive, prefix, infinitive, er, preterite, partizip = _german_forms(row)
    row.required("subject")
    return Verb(
        base=base,
        past=past,
        participle=participle,
        particle=particle,
        preposition=preposition,
        infinitive=infinitive,
        er=er,
        preterite=preterite,
        partizip=partizip,
        prefix=prefix,
        reflexive=reflexive,
        auxiliary=row.one_of("auxiliary", ("haben", "sein")),
        subject=row.each_of("subject", classes, "classes.csv"),
        slots=_slots(row, classes),
        where=row.each_of("where", classes, "classes.csv"),
        manner=row.each_of("manner", manners, "adverbs.csv with the kind manner"),
        flags=frozenset(row.each_of("flags", _FLAGS, "the header of verbs.csv")),
        line=row.line,
    )


def _english_forms(row: Row) -> tuple[str, str, str, str, str]:
    words = row.words("english")
    if len(words) not in (3, 4) or any(word.startswith("+") for word in words[:3]):
        raise row.error(
            f"{row['english']!r} is not three English forms",
            "Write base form, past and participle, then perhaps +particle or a preposition: pick picked picked +up",
        )
    extra = words[3] if len(words) == 4 else ""
    particle = extra[1:] if extra.startswith("+") else ""
    return words[0], words[1], words[2], particle, "" if particle else extra


def _german_forms(row: Row) -> tuple[bool, str, str, str, str, str]:
    words = row.words("german")
    reflexive = words[:1] == ["sich"]
    words = words[1:] if reflexive else words
    if len(words) != 4:
        raise row.error(
            f"{row['german']!r} is not four German forms",
            "Write infinitive, er-form, simple past and participle: ab|holen holt holte abgeholt",
        )
    prefix, _, infinitive = words[0].rpartition("|")
    if not infinitive.endswith("n"):
        raise row.error(f"the infinitive {infinitive!r} does not end in n", "Write the infinitive first")
    if prefix and not words[3].startswith(prefix):
        raise row.error(
            f"the participle {words[3]!r} does not begin with the prefix {prefix!r}",
            "Write the participle with its prefix: abgeholt",
        )
    return reflexive, prefix, infinitive, *words[1:]


def _slots(row: Row, classes) -> dict[str, Slot]:
    slots = {}
    for part in filter(None, (part.strip() for part in row["objects"].split(";"))):
        slot = _slot(row, part.split())
        if slot.role != "that" and not slot.classes:
            raise row.error(f"the object {part!r} names no class", "Add at least one class of classes.csv")
        for name in slot.classes:
            row.check_known(name, "objects", classes, "classes.csv")
        slots[slot.role] = slot
    return slots


def _slot(row: Row, words: list[str]) -> Slot:
    if words == ["that"]:
        return Slot("that")
    if words[0] in _ROLES:
        return Slot(_ROLES[words[0]], tuple(words[1:]))
    if words[0] in PREPOSITIONS and words[1:2] in (["acc"], ["dat"]):
        return Slot("prepositional", tuple(words[2:]), words[0], words[1])
    raise row.error(
        f"the object {' '.join(words)!r} is neither acc, dat, to, at, that nor a German preposition with its case",
        "Write for example: acc text · dat person · auf acc transport",
    )
