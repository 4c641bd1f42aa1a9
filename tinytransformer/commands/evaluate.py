"""``evaluate``: translate a test set and score it as the field does."""

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path

from tinytransformer.commands.translate import add_model_options, load
from tinytransformer.text.corpus import CorpusError, microworld_trees, multi30k, penn_trees, read_lines
from tinytransformer.text.microworld import Example, generate
from tinytransformer.training.checkpoints import find_model, rewrite_card
from tinytransformer.training.recipe import TREES
from tinytransformer.translation.bracketing import PARSING, bracketing, parse
from tinytransformer.translation.card import with_score
from tinytransformer.translation.evaluation import microworld_scores, perplexity, score
from tinytransformer.translation.exchange.onnx_model import OnnxModel
from tinytransformer.translation.translator import Decoding, Translator

DESCRIPTION = """\
Translate a text and score it with sacreBLEU: cased and detokenised (the number to compare, with its signature), the
same lower-cased (for papers that report that), chrF, and the model's perplexity. On the microworld also pronouns, word
alignment and BLEU per construction. --source and --reference take files with a sentence a line, plain or gzip; nothing
in them is cleaned. With --corpus trees or treebank a parser is scored by its labelled brackets, as evalb does."""
EXAMPLES = """\
examples:
  python -m tinytransformer evaluate --model runs/mine/model --source test.en --reference test.de --json
  python -m tinytransformer evaluate --corpus multi30k --split test_2016_flickr --data FOLDER
  python -m tinytransformer evaluate --model microworld-en-de --corpus microworld --split test_pronoun
  python -m tinytransformer evaluate --model runs/parser/model --corpus trees --beam 21 --alpha 0.3
  python -m tinytransformer evaluate --model runs/parser/model --corpus treebank --reference wsj23.mrg"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_model_options(parser)
    text = parser.add_argument_group("what to translate: two files, or a split of a corpus")
    text.add_argument("--source", type=Path, help="the file to translate")
    text.add_argument("--reference", type=Path, help="its translation by people, line by line; or a treebank")
    text.add_argument("--corpus", choices=("multi30k", "microworld", *TREES), help="a corpus instead of files")
    text.add_argument("--split", help="its part; default: test_2016_flickr, or test in the microworld")
    text.add_argument("--pair", default="en-de", help="its languages, such as de-en or en-fr; default: en-de")
    text.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    text.add_argument("--count", type=int, default=1000, help="microworld: how many sentences; default: 1000")
    text.add_argument("--seed", type=int, default=1, help="microworld: which sentences; default: 1")
    parser.add_argument("--output", type=Path, help="also write the translations into this file, one a line")
    parser.add_argument("--add-to-card", action="store_true", help="also write the scores into the model's card")
    parser.add_argument("--json", action="store_true", help="print all scores as one JSON object")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    if options.output and not options.output.parent.is_dir():
        raise CorpusError(f"--output {options.output}: there is no folder {options.output.parent}")
    if options.corpus in TREES:
        _parse(options)
        return
    name, sources, references, examples = _text(options)
    if (options.beam, options.alpha) != (Decoding.beam, Decoding.alpha):
        name = f"{name}, beam {options.beam}, α = {options.alpha:g}"
    translator = load(options)
    pairs = _encoded(translator, sources, references)
    start = time.perf_counter()
    translations = translator(sources, options.beam, options.alpha, split=False)
    seconds = time.perf_counter() - start
    texts = [one.text for one in translations]
    scores = score(texts, references)
    found = {
        "model": str(options.model),
        "text": name,
        **asdict(scores),
        "perplexity": _perplexity(translator, pairs),
        "beam": options.beam,
        "alpha": options.alpha,
        "seconds": seconds,
    }
    if examples:
        found.update(microworld_scores(translator, examples, texts))
    _report(found, options, texts)
    if options.add_to_card:
        rewrite_card(find_model(options.model), lambda card: with_score(card, name, scores))


def _report(found: dict, options: argparse.Namespace, written: list[str]) -> None:
    """Print the scores first: they are not lost where the output cannot be written."""
    print(json.dumps(found, ensure_ascii=False) if options.json else "\n".join(_lines(found)), flush=True)
    if options.output:
        options.output.write_text("".join(f"{one}\n" for one in written), encoding="utf-8")


def _encoded(translator: Translator, sources: list[str], references: list[str]) -> list[tuple[list[int], list[int]]]:
    """The ids of both sides; a line that is too long is named before anything is translated."""
    pairs = [tuple(map(translator.tokenizer.encode, pair)) for pair in zip(sources, references, strict=True)]
    longest = translator.model.config.max_length - 1
    for line, ids in enumerate(pairs, start=1):
        for side, length in zip(("source", "reference"), map(len, ids), strict=True):
            if length > longest:
                raise CorpusError(
                    f"line {line} of the {side} has {length} tokens, and the model takes {longest}: divide it, or "
                    "leave the pair out"
                )
    return pairs


def _perplexity(translator: Translator, pairs: list[tuple[list[int], list[int]]]) -> float:
    """As of any model; an exported one gives only logits, so it is asked sentence by sentence."""
    if not isinstance(translator.model, OnnxModel):
        return perplexity(translator.model, pairs)
    total = sum(translator.log_probability(source, target) for source, target in pairs)
    return math.exp(-total / sum(len(target) + 1 for _, target in pairs))


def _text(options: argparse.Namespace) -> tuple[str, list[str], list[str], list[Example]]:
    """A name, the sources and the references; for the microworld also what is known about the sentences."""
    if options.corpus is None:
        if not (options.source and options.reference):
            raise CorpusError("say what to translate: --source and --reference, or --corpus with --split")
        sources, references = list(read_lines(options.source)), list(read_lines(options.reference))
        if len(sources) != len(references):
            raise CorpusError(
                f"{options.source} has {len(sources)} lines but {options.reference} has {len(references)}: they must "
                "be translations of each other, line by line"
            )
        return options.source.name, sources, references, []
    if options.source or options.reference:
        raise CorpusError(f"--corpus {options.corpus} has its own text: leave out --source and --reference")
    languages = options.pair.split("-")
    if len(languages) != 2:
        raise CorpusError(f"--pair {options.pair!r} is not a pair of languages: write en-de, de-en, en-fr or fr-en")
    if options.corpus == "multi30k":
        corpus = multi30k(options.split or "test_2016_flickr", *languages, options.data)
        return corpus.name, list(corpus.source), list(corpus.target), []
    if languages not in (["en", "de"], ["de", "en"]):
        raise CorpusError(f"the microworld has no pair {options.pair}: choose en-de or de-en")
    split = options.split or "test"
    examples = list(generate(split, options.count, options.seed))
    sides = [example.source for example in examples], [example.target for example in examples]
    if languages == ["en", "de"]:
        return f"microworld {split}", *sides, examples
    return f"microworld {split} de–en", sides[1], sides[0], []


def _parse(options: argparse.Namespace) -> None:
    """Parse the sentences of gold trees, and score the brackets."""
    if options.add_to_card:
        raise CorpusError("--add-to-card is for translations: a card has no place for brackets")
    if options.corpus == "treebank":
        if not options.reference:
            raise CorpusError("say which trees: --corpus treebank needs --reference, a file in Penn format")
        name, trees = options.reference.name, penn_trees(options.reference)
    else:
        split = options.split or "test"
        name, trees = f"microworld {split} trees", microworld_trees(split, options.count, options.seed)
    translator = load(options)
    start = time.perf_counter()
    decoding = Decoding(options.beam, options.alpha, PARSING.extra)
    parses = parse(translator, [tree.words() for tree in trees], decoding)
    seconds = time.perf_counter() - start
    scores = bracketing(trees, parses)
    found = {
        "model": str(options.model),
        "text": name,
        **{key: getattr(scores, key) for key in ("precision", "recall", "f1", "exact")},
        **asdict(scores),
        "beam": options.beam,
        "alpha": options.alpha,
        "seconds": seconds,
    }
    _report(found, options, [str(one.tree) for one in parses])


def _lines(found: dict) -> list[str]:
    """The scores for people, one a line."""
    lines = []
    for name, value in found.items():
        if isinstance(value, dict):
            lines += [name, *(f"  {key:24} {one:.2f}" for key, one in value.items())]
        else:
            lines.append(f"{name:30} {value:.4g}" if isinstance(value, float) else f"{name:30} {value}")
    return lines
