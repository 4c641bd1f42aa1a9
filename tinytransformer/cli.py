"""The command line: finds the command, imports it alone, and turns its errors into one line and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "translate": "translate text",
    "explore": "look at the attention of a translation, in one page for a browser",
    "train": "train a translator, or go on training one",
    "evaluate": "translate a test set and score it",
    "average": "average the last checkpoints of a run into a model",
    "export": "write a model in a format of other libraries: ONNX, Marian, CTranslate2",
    "import-marian": "make a Marian model, such as one of OPUS-MT, a model of ours",
    "download": "fetch a corpus once",
    "corpus": "print sentence pairs of a corpus",
    "precheck": "look at an assignment before it is handed in",
    "classroom": "make a course folder with the assignments",
    "grade": "grade a folder of submissions",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 2 wrong arguments or bad input, 1 as the command says."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = build_parser(arguments[0] if arguments else None)
    options = parser.parse_args(arguments, argparse.Namespace(arguments=arguments))
    code = 0
    try:
        code = options.run_command(options) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (such as head) has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        parser.exit(130, "\nStopped; nothing is half-written.\n")
    except (ValueError, OSError, RuntimeError) as error:
        if type(error) in (RuntimeError, KeyError):
            raise  # not one of ours: a fault of the program, whose traceback is wanted
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    return code


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands. Only the named one gets its options, for that imports what it needs."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytransformer",
        description="The Transformer, piece by piece: corpora, training, translation, classroom.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, help in COMMANDS.items():
        one = commands.add_parser(name, help=help, description=help)
        if name == command:
            import_module(f"tinytransformer.commands.{name.replace('-', '_')}").configure(one)
    return parser
