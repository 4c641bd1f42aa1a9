"""The plan of a training: its numbers are those of the cost table and of the model, and nothing is left behind."""

import math
from dataclasses import replace

import pytest
import torch

from tinytransformer import Transformer, TransformerConfig
from tinytransformer.cli import main
from tinytransformer.experiments import plan as module
from tinytransformer.experiments.costs import ASSUMED, GPUS, today, training_operations
from tinytransformer.experiments.paper import TRAINING
from tinytransformer.experiments.plan import bytes_for_backward, described, make_plan, saved_bytes, two_steps
from tinytransformer.text.batching import collate
from tinytransformer.training.recipe import RecipeError
from tinytransformer.training.recipes import RECIPES

TINY = replace(
    RECIPES["wmt14-base"], vocab_size=50, d_model=16, d_ff=32, num_heads=2, num_layers=3, tokens=280, accumulate=2,
    steps=1000, dropout=0.0,
)  # fmt: skip


def test_the_base_recipe_is_the_papers():
    recipe, paper = RECIPES["wmt14-base"], TRAINING["base"]
    assert recipe.config() == TransformerConfig(vocab_size=paper.vocabulary, max_length=recipe.max_length)
    assert recipe.tokens * recipe.accumulate == paper.target_tokens
    assert (recipe.steps, recipe.warmup, recipe.smoothing, recipe.falls) == (paper.steps, 4000, 0.1, "root")
    assert recipe.peak == pytest.approx(512**-0.5 * 4000**-0.5)


def test_operations_and_hours_are_those_of_the_cost_table():
    """The plan counts the products on the model, the table by formulas."""
    recipe = RECIPES["wmt14-base"]
    paper = training_operations(recipe.config(), TRAINING["base"], ASSUMED.sentence_length)
    plan = make_plan(replace(TINY, vocab_size=37_000), "wmt14-base")
    assert plan.epochs == pytest.approx(560 * 1000 / 4_500_000 / 28)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "bytes_for_backward", lambda config, length: 1.0)
        base = make_plan(recipe, "wmt14-base")
    assert base.operations == pytest.approx(paper)
    assert base.parameters == 63_082_496
    assert base.hours["A100", 8] == pytest.approx(today(paper, GPUS["A100"], 8)["hours"])
    assert base.hours["A100", 1] / base.hours["A100", 8] == pytest.approx(8 * ASSUMED.scaling)


def test_what_is_said_of_the_memory_is_what_autograd_keeps():
    """Extrapolated from one and two layers and small batches, against a whole batch of the whole model."""
    config = TINY.config()
    small, large = (collate([([5] * 27, [6] * 27)] * pairs) for pairs in (10, 30))
    model = Transformer(config)
    measured = (saved_bytes(model, large) - saved_bytes(model, small)) / (20 * 28)
    assert bytes_for_backward(config, 28) == pytest.approx(measured, rel=0.01)
    # What a backward pass needs of a linear layer is at the least its input: 4 bytes a feature.
    assert measured > 4 * config.num_layers * (config.d_ff + 5 * config.d_model)


def test_agreement_doubles_the_work():
    once, twice = make_plan(TINY), make_plan(replace(TINY, agreement=1.0))
    assert twice.operations == 2 * once.operations
    assert twice.bytes_of_a_token == 2 * once.bytes_of_a_token


def test_two_steps_are_real_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = torch.get_num_threads()
    first, second = two_steps(TINY)
    assert first == pytest.approx(math.log(50), rel=0.3)
    assert second != first
    assert two_steps(TINY) == [first, second]
    assert list(tmp_path.iterdir()) == []
    assert torch.get_num_threads() == state


def test_a_batch_that_does_not_fit_is_said_to_be_too_large():
    plan = make_plan(TINY)
    assert any("fits a GPU of 80 GB" in line for line in described(plan))
    line = described(replace(plan, tokens_of_a_batch=10**9))[-1]
    assert "does NOT fit a GPU of 80 GB; lower --tokens and raise --accumulate" in line
    assert any("your own text" in line for line in described(plan))


def test_only_transformers_are_counted():
    with pytest.raises(RecipeError, match=r"architecture='lstm': a dry run counts .* choose architecture=transformer"):
        make_plan(replace(RECIPES["microworld"], architecture="lstm"))


def test_the_command_prints_the_plan_and_how_to_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = (
        "train --recipe wmt14-base --vocab-size 50 --d-model 16 --d-ff 32 --num-heads 2 --num-layers 2 --tokens 800 "
        "--folder runs/x --dry-run"
    )
    assert main(typed.split()) == 0
    printed = capsys.readouterr().out
    assert "data        4,500,000 sentence pairs, taken to have 28 tokens a side" in printed
    assert "a step      1,600 target tokens: 2 batches of 800 on one GPU" in printed
    assert "torchrun --nproc-per-node=8 -m tinytransformer train --recipe wmt14-base" in printed
    assert "--tokens 200 --accumulate 1" in printed
    assert "--dry-run" not in printed
    assert list(tmp_path.iterdir()) == []
