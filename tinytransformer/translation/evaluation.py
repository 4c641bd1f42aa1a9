"""Scores: what the field prints, with sacreBLEU's signature, and what only the microworld can tell.

BLEU and chrF are sacreBLEU's own. Published numbers are comparable when their signatures are; many papers on Multi30k
report lower-cased, tokenised BLEU, so that is computed beside it, under its own name.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from tinytransformer.model.baselines import Model
from tinytransformer.text.batching import Encoded, TokenBatches
from tinytransformer.text.microworld import CONSTRUCTIONS, Example
from tinytransformer.text.microworld.examples import text_of
from tinytransformer.training.loss import mean_loss
from tinytransformer.translation.translator import Translator

# The personal pronouns that the German of the microworld uses for a noun of the same sentence.
PRONOUNS = frozenset("er sie es ihn ihm ihr ihnen".split())


@dataclass(frozen=True)
class Scores:
    """The scores of one set of translations."""

    bleu: float  # cased, detokenised: sacreBLEU's default
    signature: str
    bleu_lowercase_tokenised: float
    signature_lowercase_tokenised: str
    chrf: float
    signature_chrf: str
    sentences: int


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Score translations against one reference each."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations but {len(references)} references: give one for each")
    if not references:
        raise ValueError("there is nothing to score: give at least one sentence")
    cased, lowercase, chrf = BLEU(), BLEU(lowercase=True), CHRF()
    found = [metric.corpus_score(list(hypotheses), [list(references)]).score for metric in (cased, lowercase, chrf)]
    signatures = [str(metric.get_signature()) for metric in (cased, lowercase, chrf)]
    return Scores(found[0], signatures[0], found[1], signatures[1], found[2], signatures[2], len(references))


def perplexity(model: Model, pairs: Sequence[Encoded], tokens: int = 4096) -> float:
    """exp of the mean loss per target token, without smoothing. Only models with one tokenizer can be compared."""
    return math.exp(mean_loss(model, TokenBatches(pairs, tokens).epoch(0, 0)))


def pronouns_of(text: str) -> list[str]:
    """The pronouns of a German text, in their order."""
    words = (word.strip(".,?!").lower() for word in text.split())
    return [word for word in words if word in PRONOUNS]


def pronoun_accuracy(hypotheses: Sequence[str], examples: Sequence[Example]) -> float | None:
    """Of the sentences with a pronoun, the share whose translation has the very pronouns of the reference.

    None where no sentence has one.
    """
    pairs = [(one, two.target) for one, two in zip(hypotheses, examples, strict=True) if two.pronouns]
    right = sum(pronouns_of(one) == pronouns_of(two) for one, two in pairs)
    return right / len(pairs) if pairs else None


def bleu_by_construction(hypotheses: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """BLEU of the sentences that show each construction of the microworld."""
    found = {}
    for name in CONSTRUCTIONS:
        rows = [i for i, example in enumerate(examples) if name in example.constructions]
        if rows:
            found[name] = score([hypotheses[i] for i in rows], [examples[i].target for i in rows]).bleu
    return found


Links = set[tuple[int, int]]


def alignment_error_rate(found: Iterable[Links], gold: Iterable[Links]) -> float:
    """AER (Och and Ney 2003) when all gold links are sure: 1 − 2 |A ∩ G| / (|A| + |G|), over all sentences."""
    common = size = 0
    for ours, theirs in zip(found, gold, strict=True):
        common += len(ours & theirs)
        size += len(ours) + len(theirs)
    return 1 - 2 * common / size if size else 0.0


def alignment_errors(translator: Translator, examples: Sequence[Example]) -> dict[tuple[int, int | None], float]:
    """The alignment error of every head of the cross-attention (layer, head), and of a layer's mean head (layer, None).

    The model is made to write the reference. Each target word is linked to the source word that gets most of the
    attention while the pieces of the target word are being written; one that looks at the end token gets no link.
    """
    found: dict[tuple[int, int | None], list[Links]] = {}
    for example in examples:
        source, source_words = pieces_of_words(translator, example.source_words)
        target, target_words = pieces_of_words(translator, example.target_words)
        for record in translator.record(source, target):
            if record.kind == "cross":
                heads = {**dict(enumerate(record.weights[0])), None: record.weights[0].mean(0)}
                for head, weights in heads.items():
                    # The row that has read a piece writes the next one, so the last row writes the end.
                    links = _links(weights[:-1].tolist(), source_words, target_words)
                    found.setdefault((record.layer, head), []).append(links)
    gold = [{(i, j) for i, j in example.alignment} for example in examples]
    return {place: alignment_error_rate(links, gold) for place, links in found.items()}


def pieces_of_words(translator: Translator, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """The ids of a sentence given as words, and for each piece the number of the word that it begins in."""
    ids = translator.tokenizer.encode(text_of(list(words)))
    letters = [number for number, word in enumerate(words) for _ in word]
    owners, place = [], 0
    for piece in translator.tokenizer.pieces(ids):
        owners.append(letters[place])
        place += len(piece.replace("▁", ""))
    return ids, owners


def _links(weights: list[list[float]], source_words: list[int], target_words: list[int]) -> Links:
    links = set()
    for word in set(target_words):
        mass: dict[int, float] = {}
        for row, owner in zip(weights, target_words, strict=True):
            if owner == word:
                for weight, column in zip(row, [*source_words, -1], strict=True):
                    mass[column] = mass.get(column, 0.0) + weight
        best = max(mass, key=mass.__getitem__)
        if best >= 0:
            links.add((best, word))
    return links


def microworld_scores(translator: Translator, examples: Sequence[Example], hypotheses: Sequence[str]) -> Mapping:
    """What can be said about translations of microworld examples beyond BLEU.

    The alignment error is that of the best layer, and None for a model without attention.
    """
    errors = alignment_errors(translator, examples)
    layers = {layer: error for (layer, head), error in errors.items() if head is None}
    best = min(layers, key=layers.__getitem__, default=None)
    return {
        "pronoun_accuracy": pronoun_accuracy(hypotheses, examples),
        "alignment_error": layers.get(best),
        "alignment_layer": best,
        "alignment_error_by_head": {
            f"layer {layer} head {head}": error for (layer, head), error in errors.items() if head is not None
        },
        "bleu_by_construction": bleu_by_construction(hypotheses, examples),
    }
