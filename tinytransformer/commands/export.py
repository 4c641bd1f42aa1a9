"""``export``: a model as a folder that other libraries open."""

import argparse
from pathlib import Path

from tinytransformer.training.checkpoints import CARD, find_model, load_model, shipped_models
from tinytransformer.translation.exchange.ctranslate import export_ctranslate2
from tinytransformer.translation.exchange.formats import ExchangeError
from tinytransformer.translation.exchange.marian import export_marian
from tinytransformer.translation.exchange.onnx_export import export_onnx

DESCRIPTION = """\
Write a model as a folder of another format, with its tokenizer and its card, so that the folder stands alone:

  onnx         encoder and decoder step as two graphs over one file of weights, for onnxruntime and many others;
               with --int8 every matrix in 8-bit integers, the embedding included: a third of the size or less
  marian       a folder for Hugging Face transformers, opened by AutoModelForSeq2SeqLM.from_pretrained
  ctranslate2  a folder for CTranslate2, an engine in C++

ONNX takes any Transformer. The other two have a place only for sinusoidal positions, tied embeddings and heads of the
usual size; a model that does not fit is refused with the reason. Weights are float32 unless --int8 is given."""
EXAMPLES = """\
examples:
  python -m tinytransformer export --to onnx --int8 --output multi30k-int8
  python -m tinytransformer export --model microworld-en-de --to marian --output for-transformers
  python -m tinytransformer export --model runs/mine/model --to ctranslate2 --output for-ctranslate2"""
FORMATS = {"onnx": export_onnx, "marian": export_marian, "ctranslate2": export_ctranslate2}
# What is printed at the end: text in, text out, in the words of the other library.
USE = {
    "onnx": """\
from tinytransformer.translation.exchange.onnx_model import onnx_translator
print(onnx_translator({folder!r})("A dog runs.").text)""",
    "marian": """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained({folder!r})
model = AutoModelForSeq2SeqLM.from_pretrained({folder!r})
found = model.generate(**tokenizer("A dog runs.", return_tensors="pt"))
print(tokenizer.decode(found[0], skip_special_tokens=True))""",
    "ctranslate2": """\
import ctranslate2, sentencepiece
source, target = (sentencepiece.SentencePieceProcessor({folder!r} + f"/{{side}}.spm") for side in ("source", "target"))
translator = ctranslate2.Translator({folder!r})
tokens = source.encode("A dog runs.", out_type=str) + [{end!r}]
found = translator.translate_batch([tokens], beam_size=4, length_penalty=0.6)
print(target.decode(found[0].hypotheses[0]))""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = ", ".join(shipped_models())
    parser.add_argument(
        "--model", default="multi30k-en-de", help=f"a model folder, or a shipped model ({names}); default: %(default)s"
    )
    parser.add_argument("--to", choices=FORMATS, required=True, help="the format")
    parser.add_argument("--int8", action="store_true", help="onnx only: 8-bit integers instead of float32")
    parser.add_argument("--output", type=Path, required=True, help="the folder to write, a new one")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    if options.int8 and options.to != "onnx":
        advice = ': CTranslate2 makes them when it starts, with compute_type="int8"' if options.to != "marian" else ""
        raise ExchangeError(f"--int8 is for --to onnx, not for {options.to}{advice}")
    folder = find_model(options.model)
    model, tokenizer = load_model(folder)
    made = f"Made from the model {folder.name} by `python -m tinytransformer export --to {options.to}"
    note = f"{made}{' --int8' if options.int8 else ''}`. Its card, with its terms:\n\n"
    also = {CARD: note.encode() + (folder / CARD).read_bytes()}
    settings = {"int8": True} if options.int8 else {}
    goal = FORMATS[options.to](model, tokenizer, options.output, also=also, **settings)
    print(written(goal))
    (end,) = tokenizer.pieces([model.config.end_id])
    if options.to == "onnx":
        print(f'\nUse it:\n\npython -m tinytransformer translate --model {goal} "A dog runs."')
    print(f"\nUse it in Python:\n\n{USE[options.to].format(folder=str(goal), end=end)}")


def written(folder: Path) -> str:
    """What lies in a new folder, the largest file first, and how large it all is."""
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    lines = [f"  {name:24} {size:>12,}" for name, size in sorted(sizes.items(), key=lambda item: -item[1])]
    return "\n".join([f"{folder}: {sum(sizes.values()):,} bytes", *lines])
