"""Draw the README's picture: a tiny Transformer learns to spell words backwards, and shows where it looks. Then the
figures for slides, as SVG.

Run: make figures (about a minute on one core; the same pictures each time). ARGS=--slides draws the slides only.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from bookmaking import slides

from tinytransformer import PRESETS, Transformer, TransformerConfig, record_attention
from tinytransformer.inspection import plots

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PAD, START, END = 0, 1, 2
FIRST = 3  # the id of "a"
STEPS, BATCH, LONGEST = 2500, 64, 12
WORD = "attention"


def random_words(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words of random letters of one length; the same backwards as decoder input and as decoder output."""
    length = int(torch.randint(3, LONGEST + 1, (1,), generator=generator))
    source = torch.randint(FIRST, FIRST + len(LETTERS), (BATCH, length), generator=generator)
    edge = torch.ones(BATCH, 1, dtype=torch.long)
    return source, torch.cat([START * edge, source.flip(1)], 1), torch.cat([source.flip(1), END * edge], 1)


def train(model: Transformer) -> float:
    """Adam, the rate rising over 200 steps and falling to zero at the end; returns the last loss."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min((step + 1) / 200, 1 - step / STEPS))
    for _ in range(STEPS):
        source, target_in, target_out = random_words(generator)
        loss = F.cross_entropy(model(source, target_in).flatten(0, 1), target_out.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return loss.item()


def look_inside(model: Transformer):
    """Let the model spell WORD backwards, letter by letter; then the last layer's cross-attention: (H, T, S)."""
    source = torch.tensor([[FIRST + LETTERS.index(letter) for letter in WORD]])
    spelled, cache = torch.tensor([[START]]), None
    memory = model.eval().encode(source)
    for _ in WORD:
        logits, cache = model.step(spelled[:, -1:], memory, cache)
        spelled = torch.cat([spelled, logits.argmax(-1)], 1)
    print(WORD, "->", "".join(LETTERS[token - FIRST] for token in spelled[0, 1:]))
    with record_attention(model) as records:
        model(source, spelled[:, :-1])
    return records.find("cross", 1).weights[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slides", action="store_true", help="only the figures for slides")
    torch.set_num_threads(1)
    if not parser.parse_args().slides:
        spell_backwards()
    print(*(path.name for path in slides.write_all()))


def spell_backwards() -> None:
    """Train the tiny model, and draw where it looks."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=FIRST + len(LETTERS), **PRESETS["tiny"]))
    start = time.perf_counter()
    loss = train(model)
    print(f"{STEPS} steps in {time.perf_counter() - start:.0f} s, loss {loss:.4f}")

    with torch.no_grad():
        weights = look_inside(model)
    figure = plots.attention_heads(weights, list(WORD[::-1]), list(WORD))
    for axes in figure.axes:
        axes.set(xlabel="letter read", ylabel="letter written" if axes is figure.axes[0] else "")
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / "spelling_backwards.png", dpi=110)


if __name__ == "__main__":
    main()
