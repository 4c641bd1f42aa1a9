"""The command line: every command is a thin call into the package, which is imported only when the command runs."""

import argparse
import json
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 2 wrong arguments."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (such as head) has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; a command is added by one ``_add_…`` function and its handler."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytransformer", description="The Transformer, piece by piece: corpora and (later) training."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_corpus(commands)
    return parser


def _add_corpus(commands) -> None:
    corpus = commands.add_parser("corpus", help="print sentence pairs of a corpus", description="Print sentence pairs.")
    corpora = corpus.add_subparsers(title="corpora", required=True, metavar="CORPUS")
    microworld = corpora.add_parser(
        "microworld",
        help="the embedded English–German world",
        description="Generate English–German sentence pairs with word alignment, tree and pronouns. The same split and "
        "seed always give the same pairs; a larger count continues the smaller one.",
        epilog="example: python -m tinytransformer corpus microworld --split test --count 5 --seed 1 --json",
    )
    microworld.add_argument(
        "--split",
        default="train",
        help="train, valid, test (4 to 24 words), test_long (25 to 40 words), test_novel (noun-verb and adjective-noun "
        "combinations unseen in training) or test_pronoun (contrastive pairs); default: train",
    )
    microworld.add_argument("--count", type=int, default=10, help="how many pairs; default: 10")
    microworld.add_argument("--seed", type=int, default=0, help="which stream of pairs; default: 0")
    microworld.add_argument("--json", action="store_true", help="one JSON object a line, with all annotations")
    microworld.set_defaults(run=_run_microworld)


def _run_microworld(options: argparse.Namespace) -> None:
    from tinytransformer.text.microworld import generate

    for example in generate(options.split, options.count, options.seed):
        if options.json:
            print(json.dumps(example.to_dict(), ensure_ascii=False))
        else:
            print(f"{example.source}\n{example.target}")
