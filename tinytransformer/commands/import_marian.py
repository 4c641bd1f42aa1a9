"""``import-marian``: a translator of OPUS-MT, or any other Marian folder, as a model folder of ours."""

import argparse
from pathlib import Path

from tinytransformer.commands.export import written
from tinytransformer.translation.exchange.marian_import import import_marian

DESCRIPTION = """\
Read a Marian folder (config.json, model.safetensors, source.spm, target.spm, vocab.json), as the OPUS-MT project
publishes them for a thousand pairs of languages, and write it as a model folder of ours: it translates, is scored and
shows its attention like any other. Pegasus, the same model with pre-norm, is read, too. Nothing in the folder is
executed; weights that are a pickle (pytorch_model.bin) are refused, with a way to convert them."""
EXAMPLES = """\
examples:
  python -m tinytransformer import-marian opus-mt-en-de --output models/opus-en-de
  python -m tinytransformer translate --model models/opus-en-de "A dog runs."
  python -m tinytransformer explore "A dog runs." --model models/opus-en-de --html page.html"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="the Marian folder")
    parser.add_argument("--output", type=Path, required=True, help="the model folder to write, a new one")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    goal = import_marian(options.folder, options.output)
    print(written(goal))
    print(f'\nUse it:\n\npython -m tinytransformer translate --model {goal} "A dog runs."')
