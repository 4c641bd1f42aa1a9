"""Data diversification: more to train on, made out of the same text by models (Nguyen et al. 2020).

A model for the way back makes new sources for the targets (back-translation, Sennrich, Haddow and Birch 2016): the
targets stay what people wrote, and the encoder meets each of them in several wordings. A model for the same way makes
new targets for the sources (Kim and Rush 2016). All of it keeps a model that reads the same sentences a hundred times
from learning them by heart. Departure: the paper has none of this.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.translation.translator import Decoding, Translator

# Label smoothing leaves a model a tenth of its probability on pieces that fit nowhere. Drawn at temperature 1, most
# sentences would hold one of them; at this one few do, and still few sentences come out as they stand in the corpus.
TEMPERATURE = 0.5


class DiversificationError(ValueError):
    """A version of a corpus cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Version:
    """One more version of one side of a corpus: which model writes it, from which side, and how it is decoded."""

    name: str
    model: str
    backwards: bool  # sources made from the targets; else targets made from the sources
    seed: int | None = None  # drawn at random from this seed; else by beam search

    def given(self, corpus: ParallelCorpus) -> Sequence[str]:
        """The side that it is made from."""
        return corpus.target if self.backwards else corpus.source

    def path(self, folder: Path) -> Path:
        """Where it is kept, so that a run that goes on finds what it was begun with."""
        return folder / f"made-{self.name}.json"


def versions(back: str, forth: str, copies: int, seed: int) -> list[Version]:
    """What two models shall make; an empty name is none.

    Sources come ``copies`` times, once by beam search and else at random: the more wordings, the better. Targets come
    once, by beam search, for a decoder learns whatever mistakes they have.
    """
    drawn = [Version(f"back-{copy}", back, True, 1000 * seed + copy) for copy in range(1, copies)]
    sources = [Version("back-0", back, True), *drawn] if back else []
    return [*sources, Version("forth", forth, False)] if forth else sources


def make(version: Version, corpus: ParallelCorpus, folder: Path, load: Callable[[str], Translator]) -> None:
    """Write one version of a corpus into a folder, whole or not at all; one that is there stays."""
    path = version.path(folder)
    if path.is_file():
        return
    began = time.monotonic()
    translator = load(version.model)
    decoding = Decoding()
    if version.seed is not None:
        generator = torch.Generator(translator.device).manual_seed(version.seed)
        decoding = Decoding(temperature=TEMPERATURE, generator=generator)
    given = version.given(corpus)
    # What is too long for the translator is left out, as an empty text.
    texts = [
        one.text
        for one in translator(
            [text if translator.takes(text) else "" for text in given], split=False, decoding=decoding
        )
    ]
    part = path.with_name(path.name + ".part")
    made = {"model": version.model, "seconds": time.monotonic() - began, "of": _fingerprint(given), "texts": texts}
    part.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    part.replace(path)


def diversified(corpus: ParallelCorpus, made: Sequence[Version], folder: Path) -> ParallelCorpus:
    """The corpus and its versions, each pair once; what came out empty is left out."""
    pairs = list(zip(corpus.source, corpus.target, strict=True))
    known = set(pairs)
    for version in made:
        texts = _read(version.path(folder), version.given(corpus))["texts"]
        sides = (texts, corpus.target) if version.backwards else (corpus.source, texts)
        for pair in zip(*sides, strict=True):
            if all(pair) and pair not in known:
                known.add(pair)
                pairs.append(pair)
    source, target = zip(*pairs, strict=True)
    name = f"{corpus.name} and {len(made)} versions by models"
    return replace(corpus, name=name, source=source, target=target, cleaned={})


def seconds_of(made: Sequence[Version], folder: Path) -> float:
    """How long it took to make them, one after the other."""
    return sum(_read(version.path(folder))["seconds"] for version in made)


def _fingerprint(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _read(path: Path, given: Sequence[str] | None = None) -> dict:
    """A version as it was written; where it is known what it must have been made ``of``, no other is accepted."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        of, _, texts = made["of"], float(made["seconds"]), list(made["texts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DiversificationError(
            f"{path} is not readable ({error}): delete it, if it is there, and run the training again to make it anew"
        ) from None
    if given is not None and (of, len(texts)) != (_fingerprint(given), len(given)):
        raise DiversificationError(f"{path} was made from another text: delete it, and it is made again")
    return made
