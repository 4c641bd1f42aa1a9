"""The translator: text in, text out. A model, its tokenizer and a way to decode, as one thing that can be called."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tinytransformer.model.baselines import Model
from tinytransformer.model.recording import AttentionRecords, record_attention, silence_heads
from tinytransformer.text.batching import pad
from tinytransformer.training.checkpoints import AnyTokenizer, find_model, load_model
from tinytransformer.training.devices import choose_device
from tinytransformer.translation.beam_search import beam_search
from tinytransformer.translation.greedy import EXTRA, Hypothesis, greedy, sample
from tinytransformer.translation.parallel import side_by_side

AT_ONCE = 64  # sentences of one batch
# A sentence ends at . ! ? … (and closing quotes) where a space and a capital, a digit or an opening quote follow ...
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”»)\]]*(\s+)(?=[\"'„“«(\[]*[A-ZÄÖÜÉÈÀÇ0-9])")
# ... unless the stop belongs to an abbreviation or an initial.
_NO_END = re.compile(r"(?:^|[\s(])(?:[A-ZÄÖÜ]|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|etc|e\.g|i\.e|z\.B|d\.h|bzw|ca|vs)\.$")


class TranslationError(ValueError):
    """A text cannot be translated; the message says why and what to do, ``number`` which of the given texts it is."""

    def __init__(self, reason: str, number: int | None = None):
        super().__init__(reason if number is None else f"text {number}: {reason}")
        self.reason, self.number = reason, number


@dataclass(frozen=True)
class Translation:
    """A translated text. For a text of several sentences numbers are sums, and ``parts`` holds the sentences."""

    source: str
    text: str
    score: float  # what it was ranked by: the log-probability, in beam search divided by the length penalty
    log_probability: float
    source_tokens: tuple[str, ...]  # pieces; the model reads the end token behind them
    tokens: tuple[str, ...]
    records: AttentionRecords | None = None  # on request: every attention while this translation was written
    parts: tuple["Translation", ...] = ()
    ids: tuple[int, ...] = ()  # of the tokens: text encoded anew may give other pieces than the model wrote

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Decoding:
    """How to decode: beam search as in the paper, greedy with ``beam=1``, or at random with a ``temperature``."""

    beam: int = 4
    alpha: float = 0.6
    extra: int = EXTRA
    temperature: float | None = None
    generator: torch.Generator | None = None

    def __call__(self, model: Model, source: torch.Tensor) -> list[Hypothesis]:
        """The best translation of each row of ids (B, S)."""
        if self.temperature is not None:
            generator = self.generator or torch.Generator(source.device).manual_seed(0)
            return sample(model, source, generator, self.temperature, extra=self.extra)
        if self.beam == 1:
            return greedy(model, source, self.extra)
        return [found[0] for found in beam_search(model, source, self.beam, self.alpha, self.extra)]


class Translator:
    """``Translator.load("multi30k-en-de")("A dog runs.").text``: one text to one `Translation`, a list to a list."""

    def __init__(self, model: Model, tokenizer: AnyTokenizer, name: str = "model"):
        if len(tokenizer) != model.config.vocab_size:
            raise TranslationError(
                f"the tokenizer has {len(tokenizer)} pieces but the model {model.config.vocab_size}: "
                "they do not belong together"
            )
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name

    @classmethod
    def load(cls, name_or_folder: str | Path, device: str = "auto") -> "Translator":
        """A shipped model by its name, or any model folder. Nothing in the folder is executed."""
        folder = find_model(name_or_folder)
        model, tokenizer = load_model(folder)
        return cls(model.to(choose_device(device)), tokenizer, folder.name)

    @property
    def device(self) -> torch.device:
        """Where the model computes; one without weights of its own, such as another engine's, on the CPU."""
        return next(self.model.parameters(), torch.empty(0)).device

    def __call__(
        self,
        text: str | Sequence[str],
        beam: int = 4,
        alpha: float = 0.6,
        attention: bool = False,
        split: bool = True,
        decoding: Decoding | None = None,
    ) -> "Translation | list[Translation]":
        """Translate. A text of several sentences is taken apart and joined again unless ``split`` is False.

        ``attention`` adds the attention records. ``decoding`` replaces ``beam`` and ``alpha`` by any way to decode.
        """
        decoding = decoding or Decoding(beam, alpha)
        texts = [text] if isinstance(text, str) else list(text)
        pieces = [split_sentences(one) if split else [(one, "")] for one in texts]
        sentences = [sentence for one in pieces for sentence, _ in one]
        numbers = [number for number, one in enumerate(pieces, start=1) for _ in one]
        encoded = [self._encode(number, sentence) for number, sentence in zip(numbers, sentences, strict=True)]
        done = iter(self._sentences(sentences, encoded, decoding, attention))
        found = [_joined(one, [(next(done), gap) for _, gap in gaps]) for one, gaps in zip(texts, pieces, strict=True)]
        return found[0] if isinstance(text, str) else found

    def _sentences(
        self, sentences: Sequence[str], encoded: Sequence[list[int]], decoding: Decoding, attention: bool
    ) -> list[Translation]:
        """Sentences of similar length are translated together; the results come in the given order."""
        found: list[Translation | None] = [None] * len(sentences)
        order = sorted((i for i, ids in enumerate(encoded) if ids), key=lambda i: -len(encoded[i]))
        batches = [order[first : first + AT_ONCE] for first in range(0, len(order), AT_ONCE)]
        config, device = self.model.config, self.device

        def decode(rows: list[int]) -> list[Hypothesis]:
            return decoding(self.model, pad([[*encoded[i], config.end_id] for i in rows], config.pad_id).to(device))

        at_random = decoding.temperature is not None  # one stream of random numbers: one batch after the other
        best = [decode(rows) for rows in batches] if at_random else side_by_side(self.model, decode, batches)
        for i, hypothesis in zip(order, itertools.chain(*best), strict=True):
            found[i] = self._translation(sentences[i], encoded[i], hypothesis, attention)
        return [one or Translation(text, "", 0.0, 0.0, (), ()) for one, text in zip(found, sentences, strict=True)]

    def _encode(self, number: int, sentence: str) -> list[int]:
        ids = self.tokenizer.encode(sentence)
        if len(ids) + 1 > self.model.config.max_length:
            raise TranslationError(
                f"a sentence has {len(ids)} tokens, and the model takes {self.model.config.max_length - 1}: "
                f"divide it ({sentence[:40]!r} …)",
                number,
            )
        return ids

    def _translation(self, sentence: str, ids: list[int], best: Hypothesis, attention: bool) -> Translation:
        source, target = self.tokenizer.pieces(ids), self.tokenizer.pieces(best.ids)
        text = self.tokenizer.decode(best.ids)
        records = self.record(ids, best.ids) if attention else None
        return Translation(
            sentence, text, best.score, best.log_probability, tuple(source), tuple(target), records, ids=tuple(best.ids)
        )

    def takes(self, text: str) -> bool:
        """Whether the model can read this text as one sentence."""
        return len(self.tokenizer.encode(text)) < self.model.config.max_length

    def silence(self, heads: Mapping[tuple[str, int], Iterable[int]]) -> AbstractContextManager[None]:
        """``with translator.silence({("cross", 0): [1]}):`` translates without these heads; see `silence_heads`."""
        return silence_heads(self.model, heads)

    @torch.inference_mode()
    def log_probability(self, source: Sequence[int], target: Sequence[int]) -> float:
        """The log-probability, end included, that the model gives to ``target`` as a translation of ``source``."""
        start, end, device = self.model.config.start_id, self.model.config.end_id, self.device
        read, given = (torch.tensor([ids], device=device) for ids in ([*source, end], [start, *target]))
        steps = self.model(read, given)[0].float().log_softmax(-1)  # (T, V)
        return steps.gather(-1, torch.tensor([*target, end], device=device)[:, None]).sum().item()

    @torch.inference_mode()
    def record(self, source: Sequence[int], target: Sequence[int], qk: bool = False) -> AttentionRecords:
        """Every attention while the model reads ``source`` and writes ``target``, with the tokens at both axes.

        Queries of the decoder are the tokens it was given, the start token first: a row shows where the model looks
        while it predicts the token *after* the one that names the row. ``qk`` keeps queries and keys too.
        """
        rows = {"source": [*source, self.model.config.end_id], "target": [self.model.config.start_id, *target]}
        with record_attention(self.model, qk) as records:
            self.model(*(torch.tensor([ids], device=self.device) for ids in rows.values()))
        names = {side: tuple(self.tokenizer.pieces(ids)) for side, ids in rows.items()}
        sides = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}
        return AttentionRecords(
            replace(record, query_tokens=names[sides[record.kind][0]], key_tokens=names[sides[record.kind][1]])
            for record in records
        )


def split_sentences(text: str) -> list[tuple[str, str]]:
    """The sentences of a text, each with the white space that follows it, so that joining loses nothing."""
    found = []
    for line, gap in _divided(text, re.finditer(r"(\s*\n\s*)", text)):
        sentences = list(_divided(line, _ends(line)))
        found += [*sentences[:-1], (sentences[-1][0], gap)]
    return found


def _ends(line: str) -> Iterator[re.Match]:
    return (match for match in _SENTENCE_END.finditer(line) if not _NO_END.search(line[: match.start()]))


def _divided(text: str, matches: Iterator[re.Match]) -> Iterator[tuple[str, str]]:
    """The stretches of a text between matches, each with the white space (group 1 of the match) that ended it."""
    start = 0
    for match in matches:
        yield text[start : match.start(1)], match.group(1)
        start = match.end(1)
    yield text[start:], ""


def _joined(source: str, parts: list[tuple[Translation, str]]) -> Translation:
    if len(parts) == 1:
        return parts[0][0]
    translations = tuple(one for one, _ in parts)
    return Translation(
        source=source,
        text="".join(one.text + gap for one, gap in parts),
        score=sum(one.score for one in translations),
        log_probability=sum(one.log_probability for one in translations),
        source_tokens=tuple(token for one in translations for token in one.source_tokens),
        tokens=tuple(token for one in translations for token in one.tokens),
        parts=translations,
        ids=tuple(token for one in translations for token in one.ids),
    )
