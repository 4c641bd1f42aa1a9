"""``corpus``: print sentence pairs."""

import argparse
import json

from tinytransformer.text.microworld import generate


def configure(parser: argparse.ArgumentParser) -> None:
    corpora = parser.add_subparsers(title="corpora", required=True, metavar="CORPUS")
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
    microworld.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    for example in generate(options.split, options.count, options.seed):
        if options.json:
            print(json.dumps(example.to_dict(), ensure_ascii=False))
        else:
            print(f"{example.source}\n{example.target}")
