"""``train``: from text to a model folder, in one command that can be stopped and goes on."""

import argparse
import contextlib
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path

from tqdm import tqdm

from tinytransformer.experiments.plan import described, make_plan, two_steps
from tinytransformer.inspection import plots
from tinytransformer.text.batching import TokenBatches
from tinytransformer.text.corpus import ParallelCorpus
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training import preparing
from tinytransformer.training.checkpoints import find_model, rewrite_card
from tinytransformer.training.devices import choose_device, use_threads
from tinytransformer.training.interrupts import Stopped
from tinytransformer.training.loop import Progress, train
from tinytransformer.training.processes import can_share, divided, first_alone, joined, sharing, start, started_here
from tinytransformer.training.recipe import TREES, Recipe, RecipeError, has_recipe
from tinytransformer.training.recipes import RECIPES
from tinytransformer.translation.bracketing import PARSING
from tinytransformer.translation.card import finished_model, versions_of, with_score
from tinytransformer.translation.diversification import diversified, make
from tinytransformer.translation.evaluation import perplexity, score
from tinytransformer.translation.translator import Decoding, Translator

DESCRIPTION = """\
Train a translator. Without options: the microworld model, in about five minutes on two cores. The run's folder keeps
recipe, tokenizer, log and checkpoints; the same command again goes on where the run stopped, and Ctrl-C may stop it at
any time. At the end the last checkpoints are averaged into FOLDER/model, a folder that translate and evaluate take."""
EXAMPLES = """\
examples:
  python -m tinytransformer train --folder runs/first --minutes 5
  python -m tinytransformer train --recipe multi30k --data FOLDER --folder runs/multi30k
  python -m tinytransformer train --recipe multi30k --start multi30k-en-de --peak 0.001 --folder runs/longer
  python -m tinytransformer train --recipe trees --folder runs/parser
  python -m tinytransformer train --corpus files --train train.tsv --valid valid.tsv --vocab-size 4000 --folder runs/own
  torchrun --nproc-per-node=2 -m tinytransformer train --recipe multi30k-gpu --folder runs/two-gpus
  python -m tinytransformer train --recipe wmt14-base --dry-run"""
GPUS_OF_A_MACHINE = 8


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/microworld"), help="the run's folder; default: %(default)s"
    )
    parser.add_argument(
        "--recipe", help=f"whose defaults to start from: {', '.join(RECIPES)}; default: the run's own, or microworld"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop, and save, after so many minutes")
    parser.add_argument("--data", help="folder with Multi30k's files (or set TINYTRANSFORMER_DATA)")
    parser.add_argument("--device", default="auto", help="auto (the fastest there is), cuda, mps or cpu")
    parser.add_argument("--threads", type=int, help="processor cores to use; default: all")
    parser.add_argument("--recompute", action="store_true", help="activation checkpointing: less memory, more time")
    parser.add_argument("--compile", action="store_true", help="compile the layers first (torch.compile)")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what the recipe takes on GPUs, try two small steps, and stop"
    )
    parser.add_argument("--json", action="store_true", help="print the scores as one JSON object at the end")
    _add_recipe_options(parser.add_argument_group("the recipe (default: what --recipe says)"))
    parser.set_defaults(run_command=run)


def _add_recipe_options(group) -> None:
    for field in fields(Recipe):
        name = f"--{field.name.replace('_', '-')}"
        help = f"{field.metadata['help']}; microworld: {getattr(RECIPES['microworld'], field.name) or 'none'}"
        if field.type is bool:
            group.add_argument(name, action=argparse.BooleanOptionalAction, help=help)
        else:
            group.add_argument(name, type=field.type, metavar=field.name.upper(), help=help)


def chosen_recipe(options: argparse.Namespace) -> Recipe:
    """The recipe of the run if there is one, else the named one, with whatever was said otherwise."""
    if options.recipe is None:
        base = Recipe.load(options.folder) if has_recipe(options.folder) else RECIPES["microworld"]
    elif options.recipe in RECIPES:
        base = RECIPES[options.recipe]
    else:
        raise RecipeError(f"there is no recipe {options.recipe!r}: choose one of {', '.join(RECIPES)}")
    said = {field.name: getattr(options, field.name) for field in fields(Recipe)}
    return replace(base, **{name: value for name, value in said.items() if value is not None})


def run(options: argparse.Namespace) -> None:
    use_threads(options.threads)
    recipe = chosen_recipe(options)
    if options.dry_run:
        _rehearse(options, recipe)
        return
    if can_share(recipe.processes, options.device):
        raise SystemExit(start(recipe.processes, options.arguments))
    with joined(options.device) as first:
        say = print_aside if first else (lambda text: None)
        try:
            _train(options, recipe, first, say)
        except KeyboardInterrupt as stop:
            how = "Stopped and saved" if isinstance(stop, Stopped) else "Stopped at once, after the last checkpoint"
            say(f"\n{how}. To go on: {command_line()}")
            raise SystemExit(130) from None


def _train(options: argparse.Namespace, recipe: Recipe, first: bool, say: Callable[[str], None]) -> None:
    """From text to a model folder; the first of several processes speaks."""
    tokenizer, batches = _prepared(recipe, options, first, say)
    valid = preparing.fitting(recipe, tokenizer, preparing.validation_corpus(recipe, options.data))
    model = preparing.initial_model(recipe).to(choose_device(options.device))
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters, on {next(model.parameters()).device}")
    settings = recipe.settings(minutes=options.minutes, recompute=options.recompute, compile=options.compile)
    settings = replace(settings, accumulate=max(1, recipe.accumulate // sharing()))
    with _bar(first, recipe.steps) as report:
        progress = train(
            model, batches, settings, options.folder, _validation(tokenizer, valid, _extra(recipe)), report
        )
    if first:
        _finish(options, recipe, progress, valid)


def _prepared(recipe: Recipe, options: argparse.Namespace, first: bool, say) -> tuple[Tokenizer, TokenBatches]:
    """What is read to train. The text itself is not kept: every process would hold it to the end."""
    whole, tokenizer = _text(recipe, options, first)
    whole = _with_versions(recipe, options, whole, say)
    corpus = preparing.fitting(recipe, tokenizer, whole)
    say(_described(corpus, len(whole) - len(corpus)))
    return tokenizer, preparing.training_batches(recipe, tokenizer, corpus)


def _rehearse(options: argparse.Namespace, recipe: Recipe) -> None:
    """Print the plan, try two steps of the real model and loop, and say how to start; nothing is written or read."""
    print("\n".join(described(make_plan(recipe, options.recipe))))
    first, second = two_steps(recipe)
    uniform = math.log(recipe.vocab_size)
    print(f"two steps   loss {first:.2f}, then {second:.2f}, on made-up text (ln of the vocabulary: {uniform:.2f})")
    typed = [word for word in options.arguments if word not in ("--dry-run", "--json")]
    print(f"one GPU     {shlex.join(['python', '-m', 'tinytransformer', *typed])}")
    shared = recipe.tokens * recipe.accumulate // GPUS_OF_A_MACHINE
    several = [*typed, "--tokens", str(shared), "--accumulate", "1", "--processes", "1"]
    print(
        f"{GPUS_OF_A_MACHINE} GPUs      "
        + shlex.join(["torchrun", f"--nproc-per-node={GPUS_OF_A_MACHINE}", "-m", "tinytransformer", *several])
    )
    if recipe.corpus == "files":
        print(f"text        {recipe.train} to train, {recipe.valid} to watch: a sentence a line, yours to provide")


def _text(recipe: Recipe, options: argparse.Namespace, first: bool) -> tuple[ParallelCorpus, Tokenizer]:
    """What to train on, and its tokenizer. One process writes files and downloads, the others find them there."""
    with first_alone(first):
        recipe.save(options.folder)
    # The microworld is not downloaded but made, which takes its time: so all make it at once.
    made = preparing.training_corpus(recipe) if recipe.corpus in ("microworld", "trees") else None
    with first_alone(first):
        whole = made or preparing.training_corpus(recipe, options.data)
        return whole, preparing.tokenizer_for(recipe, whole, options.folder)


def _with_versions(recipe: Recipe, options: argparse.Namespace, corpus: ParallelCorpus, say) -> ParallelCorpus:
    """The corpus and what the recipe's models make of it, if it names any. Processes divide the work."""
    versions = versions_of(recipe)
    if not versions:
        return corpus
    for version in versions:
        find_model(version.model)  # one that is missing is named now, not after minutes of work for another
    say(f"{_described(corpus, 0)}; {len(versions)} versions of it are made by models, unless they are there")
    with divided(versions) as mine:
        for version in mine:
            make(version, corpus, options.folder, lambda name: Translator.load(name, options.device))
    return diversified(corpus, versions, options.folder)


def _described(corpus: ParallelCorpus, too_long: int) -> str:
    """What is trained on, and what was done to it."""
    notes = [f"{count:,} {what}" for what, count in corpus.cleaned.items()]
    notes += [f"{too_long:,} pairs left out as too long"] if too_long else []
    return f"{corpus.name}: {len(corpus):,} pairs" + (f" (cleaned: {', '.join(notes)})" if notes else "")


def _extra(recipe: Recipe) -> int:
    """How many tokens an output may have more than its input, as in the paper."""
    return PARSING.extra if recipe.corpus in TREES else Decoding.extra


def _validation(tokenizer, corpus, extra: int) -> Callable[..., Mapping[str, float]]:
    """What is looked at while training: BLEU of greedy translations, which also decides what is best, and the loss."""
    pairs = preparing.encode(tokenizer, corpus)

    def validate(model) -> Mapping[str, float]:
        translations = Translator(model, tokenizer)(corpus.source, split=False, decoding=Decoding(beam=1, extra=extra))
        bleu = score([one.text for one in translations], corpus.target).bleu
        return {"score": bleu, "valid_bleu": bleu, "valid_loss": math.log(perplexity(model, pairs))}

    return validate


@contextlib.contextmanager
def _bar(shown: bool, steps: int) -> Iterator[Callable[[dict], None]]:
    """A progress bar with loss, learning rate, speed and the time left; validation scores are printed above it."""
    with tqdm(total=steps, unit="step", disable=not shown, dynamic_ncols=True, mininterval=1.0) as bar:

        def report(entry: dict) -> None:
            if "valid_bleu" in entry:
                text = f"step {entry['step']}: valid BLEU {entry['valid_bleu']:.2f}, loss {entry['valid_loss']:.3f}"
                bar.write(text, file=sys.stderr)
                return
            if not bar.n:  # a run that goes on: what was done before does not count as speed
                bar.initial = bar.n = bar.last_print_n = entry["step"] - 1
            bar.update(entry["step"] - bar.n)
            speed = f"{entry['target_tokens_per_second']:,.0f}/s"
            bar.set_postfix(loss=f"{entry['loss']:.3f}", rate=f"{entry['rate']:.1e}", tokens=speed, refresh=False)

        yield report


def print_aside(text: str) -> None:
    """Messages go to standard error, results to standard output."""
    print(text, file=sys.stderr)


def command_line() -> str:
    """This very command, as one would type it; under torchrun with as many processes."""
    launcher = ["python"]
    if "RANK" in os.environ and not started_here():
        launcher = ["torchrun", f"--nproc-per-node={os.environ.get('LOCAL_WORLD_SIZE', '1')}"]
    return shlex.join([*launcher, "-m", "tinytransformer", *sys.argv[1:]])


def _finish(options: argparse.Namespace, recipe: Recipe, progress: Progress, valid: ParallelCorpus) -> None:
    """Average the last checkpoints, score the result, write its folder, and show what it can do."""
    folder = options.folder / "model"
    translator, used = finished_model(recipe, options.folder, recipe.keep, folder)
    translations = translator(valid.source, split=False, decoding=Decoding(extra=_extra(recipe)))
    scores = score([one.text for one in translations], valid.target)
    rewrite_card(folder, lambda card: with_score(card, valid.name, scores))
    print_aside(
        f"{progress.step} steps in {progress.seconds / 60:.1f} minutes; the last {len(used)} checkpoints averaged"
    )
    if options.json:
        print(json.dumps({"model": str(folder), "step": progress.step, "seconds": progress.seconds, **asdict(scores)}))
        return
    print(f"{valid.name}: BLEU {scores.bleu:.2f} ({scores.signature})")
    for one in translations[:5]:
        print(f"  {one.source}\n  -> {one.text}")
    picture = _picture(translator, valid.source[0], options.folder)
    if picture:
        print(f"Attention of the last layer while it wrote the first one: {picture}")
    print(f'The model is in {folder}. Try: python -m tinytransformer translate --model {folder} "…"')


def _picture(translator: Translator, text: str, folder: Path) -> Path | None:
    """Draw where the heads of the last cross-attention look, if there is one."""
    records = translator(text, attention=True, split=False).records
    if not records:
        return None
    record = records.find("cross", max(record.layer for record in records if record.kind == "cross"))
    figure = plots.attention_heads(record.weights[0], record.query_tokens, record.key_tokens)
    path = folder / "attention.png"
    figure.savefig(path, dpi=100)
    return path
