"""``translate``: text in, text out, one translation a line."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from tinytransformer.text.corpus import decoded
from tinytransformer.training.checkpoints import shipped_models
from tinytransformer.training.devices import use_threads
from tinytransformer.translation.exchange.onnx_export import ENCODER
from tinytransformer.translation.exchange.onnx_model import onnx_translator
from tinytransformer.translation.translator import Decoding, Translation, TranslationError, Translator

LINES_AT_ONCE = 512
DESCRIPTION = """\
Translate the given texts, or standard input line by line. One text gives one line; texts of several sentences are taken
apart and joined again. The default is the paper's beam search."""
EXAMPLES = """\
examples:
  python -m tinytransformer translate "A dog runs."
  python -m tinytransformer translate --model microworld-en-de --beam 1 < sentences.txt > translations.txt
  python -m tinytransformer translate --sample 0.8 --seed 3 --json "Two men are cooking." """


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("text", nargs="*", help="texts to translate; without any, standard input is read")
    add_model_options(parser)
    parser.add_argument(
        "--extra",
        type=int,
        default=Decoding.extra,
        help="tokens that an output may have more than its input; default: 50, the paper's; 300 for trees",
    )
    parser.add_argument("--sample", type=float, metavar="TEMPERATURE", help="draw tokens at random instead; 1 is as is")
    parser.add_argument("--seed", type=int, default=0, help="which random translation; default: 0")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: source, text, score, tokens")
    parser.set_defaults(run_command=run)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """What translate and evaluate have in common."""
    names = ", ".join(shipped_models())
    parser.add_argument(
        "--model", default="multi30k-en-de", help=f"a model folder, or a shipped model ({names}); default: %(default)s"
    )
    parser.add_argument("--beam", type=int, default=4, help="beginnings kept; 1 is greedy; default: 4, the paper's")
    parser.add_argument("--alpha", type=float, default=0.6, help="length penalty; default: 0.6, the paper's")
    parser.add_argument("--device", default="auto", help="auto (the fastest there is), cuda, mps or cpu")
    parser.add_argument("--threads", type=int, help="processor cores to use; default: all")


def load(options: argparse.Namespace) -> Translator:
    """The translator that the options name: one of ours, or one that was exported to ONNX."""
    use_threads(options.threads)
    if (Path(options.model) / ENCODER).is_file():
        return onnx_translator(options.model)
    return Translator.load(options.model, options.device)


def run(options: argparse.Namespace) -> None:
    translator = load(options)
    generator = torch.Generator(translator.device).manual_seed(options.seed) if options.sample else None
    decoding = Decoding(options.beam, options.alpha, options.extra, temperature=options.sample, generator=generator)
    lines = iter(options.text) if options.text else decoded(sys.stdin.buffer, "standard input")
    # A person who types wants each answer at once; from a pipe, many lines together are faster.
    at_once = 1 if sys.stdin.isatty() else LINES_AT_ONCE
    first = 1
    while chunk := list(itertools.islice(lines, at_once)):
        try:
            _print(translator(chunk, decoding=decoding), options.json)
        except TranslationError as error:
            if error.number is None:
                raise
            _print(translator(chunk[: error.number - 1], decoding=decoding), options.json)
            raise TranslationError(f"line {first + error.number - 1}: {error.reason}") from None
        first += len(chunk)


def _print(translations: Iterable[Translation], as_json: bool) -> None:
    for one in translations:
        if as_json:
            fields = ("source", "text", "score", "log_probability", "source_tokens", "tokens")
            print(json.dumps({name: getattr(one, name) for name in fields}, ensure_ascii=False), flush=True)
        else:
            print(" ".join(one.text.split("\n")), flush=True)
