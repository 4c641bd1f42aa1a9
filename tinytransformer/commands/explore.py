"""``explore``: translate a sentence and write every attention behind it into one page for a browser."""

import argparse
from pathlib import Path

from tinytransformer.commands.translate import add_model_options, load
from tinytransformer.inspection.explorer import ExplorerError, explore
from tinytransformer.inspection.explorer.page import writable
from tinytransformer.text.microworld import SPLITS, generate

DESCRIPTION = """\
Translate one sentence and write a page that shows every attention of every head while it was translated: lines between
tokens, heat maps, the whole model at a glance, and the formula behind a single weight. Each head is also switched off
once, alone, so that the page can show what the translation becomes without it and what each head is worth. The page is
one file that needs neither Python nor a network: open it in any browser, send it to anybody."""
EXAMPLES = """\
examples:
  python -m tinytransformer explore "A dog runs." --model multi30k-en-de --html out.html
  python -m tinytransformer explore "A dog runs." --beam 1 --layers 0 3 --html out.html
  python -m tinytransformer explore --microworld test_pronoun --seed 1 --model microworld-en-de --html out.html"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("text", nargs="?", help="the sentence to translate")
    parser.add_argument("--html", type=Path, required=True, help="the page to write; a page of ours is replaced")
    add_model_options(parser)
    parser.add_argument(
        "--layers",
        type=int,
        nargs="+",
        metavar="LAYER",
        help="layers whose queries and keys go along for the neuron view; default: the last ones, as many as are small",
    )
    parser.add_argument("--no-silencing", action="store_true", help="do not try heads off: faster for large models")
    parser.add_argument(
        "--microworld",
        metavar="SPLIT",
        help=f"instead of a text: a sentence of a microworld split ({', '.join(SPLITS)}), with its gold alignment",
    )
    parser.add_argument("--seed", type=int, default=1, help="with --microworld: which sentence; default: 1")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    if (options.text is None) == (options.microworld is None):
        raise ExplorerError("say what to translate: a sentence, or --microworld with a split")
    writable(options.html)  # before the work, not after it
    what = {"text": options.text}
    if options.microworld:
        what = {"example": next(iter(generate(options.microworld, 1, options.seed)))}
    explorer = explore(model=load(options), beam=options.beam, alpha=options.alpha, layers=options.layers, **what)
    path = explorer.save_html(options.html, silencing=not options.no_silencing)
    print(explorer.state["translation"]["text"])
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
