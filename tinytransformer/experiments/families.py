"""Two families on one text: a decoder-only model that writes, an encoder-only one that fills in, each beside baselines.

Both learn English sentences of the microworld and are asked about others. Sampled sentences are held against a large
sample of the world: are all words known, all pairs of neighbours, and the shape of the whole (its parts of speech,
with number and tense)? Real unseen sentences say how many could pass at best, shuffled ones how many pass by chance.
"""

import json
import math
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from tinytransformer.experiments.measuring import one_thread
from tinytransformer.experiments.runs import in_sections, parameters, versions
from tinytransformer.model.config import TransformerConfig
from tinytransformer.model.families import DecoderOnly, EncoderOnly, LanguageModel, fill_in, generate
from tinytransformer.text import microworld
from tinytransformer.text.batching import pad
from tinytransformer.text.tokenizer import END, PAD, START, Tokenizer
from tinytransformer.text.trees import tree_of
from tinytransformer.training.checkpoints import Checkpoint, checkpoints
from tinytransformer.training.language_model import language_perplexity, sentence_batches, train_language_model
from tinytransformer.training.loop import LOG

COMMAND = "python -m tinytransformer.experiments families"
NOTE = (
    "Perplexity is per token of unseen sentences, the end included; the unigram baseline knows how often each token "
    "comes. Guesses are the likeliest token for a blank; the writer sees only what stands before it. Of sampled "
    "sentences: the share with known words only, with known pairs of neighbours only, with a known sequence of "
    "parts of speech, and with all of that, beside real unseen sentences and the same with their words shuffled. A "
    "sentence may be right and yet unknown. Seconds are of the clock, beside other work."
)
FOLDER = Path("runs/families")
KINDS: dict[str, type[LanguageModel]] = {"writer": DecoderOnly, "reader": EncoderOnly}


@dataclass(frozen=True)
class Settings:
    """The text, the models and what is asked of them."""

    sentences: int = 20_000
    unseen: int = 1000
    known: int = 60_000  # sentences of the world that sampled ones are held against
    vocab_size: int = 1700
    d_model: int = 128
    num_heads: int = 4
    d_ff: int = 512
    num_layers: int = 2
    tokens: int = 512
    steps: int = 2000
    share: float = 0.15  # of the tokens that are hidden
    sampled: int = 500
    shown: int = 8
    seed: int = 1

    def config(self, vocab_size: int) -> TransformerConfig:
        sizes = {name: getattr(self, name) for name in ("d_model", "num_heads", "d_ff", "num_layers")}
        return TransformerConfig(vocab_size, **sizes, dropout=0.0, norm="pre", max_length=64)


FULL = Settings()


class Texts:
    """Sentences to learn from and others to be judged by, with the tokenizer; its blank is one id more."""

    def __init__(self, settings: Settings):
        self.train = [one.source for one in microworld.generate("train", settings.sentences, settings.seed)]
        self.unseen = [one.source for one in microworld.generate("test", settings.unseen, settings.seed)]
        self.tokenizer = Tokenizer.train(self.train, settings.vocab_size)
        self.blank = len(self.tokenizer)
        self.rows = [self.tokenizer.encode(text) for text in self.train]
        self.judged = [self.tokenizer.encode(text) for text in self.unseen]


def trained(name: str, texts: Texts, settings: Settings, folder: Path) -> tuple[LanguageModel, dict]:
    """A model of a family after its last step, and what training told; an interrupted run goes on."""
    torch.manual_seed(settings.seed)
    model = KINDS[name](settings.config(texts.blank + 1))
    batches = sentence_batches(texts.rows, settings.tokens)
    blank = texts.blank if name == "reader" else None
    train_language_model(model, batches, settings.steps, blank, seed=settings.seed, run=folder)
    seconds = Checkpoint.load(checkpoints(folder)[-1]).state["seconds"]
    losses = [json.loads(line)["loss"] for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    return model, {"parameters": parameters(model), "seconds": seconds, "curve": thinned(losses)}


def thinned(losses: Sequence[float], points: int = 50) -> dict:
    """At most so many points of a curve, each the mean of the steps up to it."""
    every = math.ceil(len(losses) / points)
    groups = [losses[first : first + every] for first in range(0, len(losses), every)]
    steps = [min((number + 1) * every, len(losses)) for number in range(len(groups))]
    return {"steps": steps, "loss": [sum(group) / len(group) for group in groups]}


def unigram_perplexity(rows: Iterable[Sequence[int]], judged: Iterable[Sequence[int]], vocab_size: int) -> float:
    """Of sentences, with their ends, by how often each token comes in others; every token is counted once more."""
    counts = Counter(token for row in rows for token in (*row, END))
    total = sum(counts.values()) + vocab_size
    losses = [-math.log((counts[token] + 1) / total) for row in judged for token in (*row, END)]
    return math.exp(sum(losses) / len(losses))


def hidden(rows: Sequence[Sequence[int]], blank: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Sentences with a share of their tokens blank, one at least, and what stood there (PAD where nothing is asked)."""
    draw = random.Random(seed)
    shown, asked = [], []
    for row in rows:
        places = set(draw.sample(range(len(row)), max(1, round(share * len(row)))))
        shown.append([*(blank if place in places else token for place, token in enumerate(row)), END])
        asked.append([*(token if place in places else PAD for place, token in enumerate(row)), PAD])
    return pad(shown), pad(asked)


@torch.no_grad()
def guessed_percent(guesses: Tensor, asked: Tensor) -> float:
    """Of the tokens asked for, the share that was guessed."""
    return 100 * float((guesses == asked)[asked != PAD].float().mean())


def writer_section(texts: Texts, settings: Settings, folder: Path) -> dict:
    """Perplexity on unseen sentences, guesses from the left alone, and sampled sentences held against the world."""
    model, told = trained("writer", texts, settings, folder)
    inputs, targets = pad([[START, *row] for row in texts.judged]), pad([[*row, END] for row in texts.judged])
    _, asked = hidden(texts.judged, texts.blank, settings.share, settings.seed)
    with torch.no_grad():
        guesses = model(inputs).argmax(-1)
    samples = sampled(model, texts.tokenizer, settings.sampled, settings.seed)
    real = texts.unseen[: settings.sampled]
    groups = {"sampled": samples, "real": real, "shuffled": [shuffled(text) for text in real]}
    world, learned = World.of(settings.known, settings.seed), set(texts.train)
    return {
        **told,
        "perplexity": language_perplexity(model, [(inputs, targets)]),
        "unigram_perplexity": unigram_perplexity(texts.rows, texts.judged, len(texts.tokenizer)),
        "guessed_percent": guessed_percent(guesses, asked),
        "known": {name: world.shares(group) for name, group in groups.items()},
        "seen_in_training_percent": 100 * sum(text in learned for text in samples) / len(samples),
        "samples": samples[: settings.shown],
    }


def reader_section(texts: Texts, settings: Settings, folder: Path) -> dict:
    """Guesses for hidden tokens of unseen sentences, beside always the most frequent one, and some of them to read."""
    model, told = trained("reader", texts, settings, folder)
    shown, asked = hidden(texts.judged, texts.blank, settings.share, settings.seed)
    filled = fill_in(model, shown, texts.blank)
    (frequent, _), *_ = Counter(token for row in texts.rows for token in row).most_common(1)
    decode, pieces = texts.tokenizer.decode, texts.tokenizer.pieces
    return {
        **told,
        "perplexity": language_perplexity(model, [(shown, asked)]),
        "hidden": int((asked != PAD).sum()),
        "guessed_percent": guessed_percent(filled, asked),
        "most_frequent": decode([frequent]),
        "most_frequent_percent": guessed_percent(torch.full_like(asked, frequent), asked),
        "fillings": [
            {
                "shown": ["…" if token == texts.blank else pieces([token])[0] for token in row.tolist() if token > END],
                "filled": decode(full[row != PAD].tolist()),
                "original": text,
            }
            for row, full, text in zip(shown, filled, texts.unseen[: settings.shown], strict=False)
        ],
    }


def sampled(model: LanguageModel, tokenizer: Tokenizer, number: int, seed: int) -> list[str]:
    """Sentences drawn from a decoder-only model, each from the start token on."""
    drawn = generate(model, torch.full((number, 1), START), 40, torch.Generator().manual_seed(seed))
    return [tokenizer.decode(row) for row in drawn.tolist()]


def words_of(text: str) -> list[str]:
    """The words and marks of a sentence, all small."""
    return re.findall(r"[^\s.,?]+|[.,?]", text.lower())


def shuffled(text: str) -> str:
    """The same words in another order, the same one each time."""
    words = words_of(text)
    random.Random(text).shuffle(words)
    return " ".join(words)


@dataclass(frozen=True)
class World:
    """What a large sample of the microworld has: words with their parts of speech, pairs of neighbours, and shapes."""

    tags: dict[str, str]
    pairs: frozenset
    shapes: frozenset

    @classmethod
    @cache
    def of(cls, sentences: int, seed: int) -> "World":
        """The world of the training split; a word that can be several parts of speech is all of them."""
        found: dict[str, set[str]] = {}
        texts = []
        for example in microworld.generate("train", sentences, seed):
            texts.append(words_of(example.source))
            for leaf in tree_of(example.tree).leaves():
                found.setdefault(leaf.word.lower(), set()).add(leaf.label)
        tags = {word: "/".join(sorted(kinds)) for word, kinds in found.items()}
        shapes = frozenset(tuple(tags[word] for word in words) for words in texts)
        return cls(tags, frozenset(pair for words in texts for pair in _pairs(words)), shapes)

    def shares(self, texts: Sequence[str]) -> dict:
        """Of sentences, the percentage that has known words, known pairs, a known shape, and all three."""
        found = []
        for words in map(words_of, texts):
            known = all(word in self.tags for word in words)
            pairs = all(pair in self.pairs for pair in _pairs(words))
            shape = known and tuple(self.tags[word] for word in words) in self.shapes
            found.append((known, pairs, shape, known and pairs and shape))
        columns = zip(*found, strict=True)
        return {
            name: 100 * sum(column) / len(found)
            for name, column in zip(("words", "pairs", "shape", "all"), columns, strict=True)
        }


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """All neighbours; a sentence begins and ends with a gap."""
    return list(pairwise(["", *words, ""]))


def run(path: Path, folder: Path = FOLDER, settings: Settings = FULL) -> dict:
    """Train and measure the families that the file at ``path`` does not have yet; returns all. Then the runs go."""
    head = {"command": COMMAND, "versions": versions(), "note": NOTE, "settings": asdict(settings)}
    texts = cache(lambda: Texts(settings))
    sections = {
        "writer": lambda results: writer_section(texts(), settings, folder / "writer"),
        "reader": lambda results: reader_section(texts(), settings, folder / "reader"),
    }
    with one_thread():
        results = in_sections(path, head, sections, settings.seed)
    shutil.rmtree(folder, ignore_errors=True)
    return results
