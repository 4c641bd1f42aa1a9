"""The models before the Transformer in every place where a Transformer is used: search, records, folders, training."""

import copy
import json
from dataclasses import replace

import pytest
import torch
from support import max_difference, random_ids, small_model
from support_baselines import ATTENTIVE, BASELINES, small_baseline
from support_training import settings, some_batches

from tinytransformer import TransformerConfig, record_attention, silence_heads
from tinytransformer.cli import main
from tinytransformer.inspection.explorer import ExplorerError, explore
from tinytransformer.model import ARCHITECTURES, BaselineConfig, Transformer, build_model
from tinytransformer.text.corpus import microworld
from tinytransformer.text.microworld import generate
from tinytransformer.text.tokenizer import Tokenizer
from tinytransformer.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    latest,
    load_model,
    save_model,
    write_folder,
)
from tinytransformer.training.loop import TrainingError, train
from tinytransformer.training.loss import batch_loss, smoothed_cross_entropy
from tinytransformer.training.preparing import initial_model
from tinytransformer.training.recipe import Recipe, RecipeError
from tinytransformer.translation.beam_search import beam_search
from tinytransformer.translation.card import model_card
from tinytransformer.translation.evaluation import alignment_errors, microworld_scores, perplexity
from tinytransformer.translation.greedy import greedy
from tinytransformer.translation.translator import Translator

every_model = pytest.mark.parametrize("architecture", BASELINES)
every_attentive = pytest.mark.parametrize("architecture", ATTENTIVE)
SMALL = Recipe(pairs=400, vocab_size=300, d_model=16, num_layers=1, tokens=400, steps=20, warmup=5)


@pytest.fixture(scope="module")
def tokenizer():
    corpus = microworld("train", 300)
    return Tokenizer.train([*corpus.source, *corpus.target], vocab_size=200)


@pytest.fixture
def sentences():
    return random_ids(3, 7, padding=2), random_ids(3, 5)


def test_the_dictionary_names_what_the_course_compares():
    recurrent = [f"{cell}{attention}" for attention in ("", "-additive", "-dot") for cell in ("rnn", "gru", "lstm")]
    assert list(ARCHITECTURES) == ["transformer", *recurrent, "convs2s", "bytenet"]
    assert isinstance(build_model(TransformerConfig(20, d_model=16, num_heads=2)), Transformer)
    assert build_model(BaselineConfig("gru", 20)).config == BaselineConfig("gru", 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "mamba"}, "architecture='mamba' is no baseline: choose one of rnn, gru, lstm, rnn-additive"),
        ({"architecture": "transformer"}, "is no baseline: choose one of .* or TransformerConfig for the Transformer"),
        ({"vocab_size": 0}, "vocab_size=0 must be a whole number of at least 1"),
        ({"d_model": 15}, "d_model=15 is odd, but a direction of a layer has half of it: make it even"),
        ({"num_layers": 0}, "num_layers=0 must be a whole number of at least 1"),
        ({"dropout": 1.0}, r"dropout=1.0 is outside \[0, 1\)"),
        ({"kernel": 4}, "kernel=4 must be an odd whole number, such as 3"),
        ({"kernel": 0}, "kernel=0 must be an odd whole number"),
        ({"kernel": 3.0}, "kernel=3.0 must be an odd whole number"),
        ({"bidirectional": "yes"}, "bidirectional='yes' must be True or False"),
        ({"tie_embeddings": 1}, "tie_embeddings=1 must be True or False"),
        ({"end_id": 20}, "end_id=20 is outside the vocabulary: choose one of 0 … 19"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(ValueError, match=message):
        BaselineConfig(**{"architecture": "gru", "vocab_size": 20, **changes})


def test_bad_ids_are_refused_as_by_the_transformer():
    model = small_baseline("gru")
    memory = model.encode(random_ids(2, 5))
    with pytest.raises(ValueError, match="source ids run from 3 to 31, outside the vocabulary 0 … 30"):
        model.encode(torch.tensor([[3, 31]]))
    with pytest.raises(ValueError, match="target has 41 tokens but max_length=40"):
        model.decode(random_ids(2, 41), memory)
    with pytest.raises(ValueError, match="target has 3 rows but the source has 2"):
        model.step(random_ids(3, 1), memory)


@every_model
def test_a_sentence_of_padding_alone_gives_numbers(architecture):
    model = small_baseline(architecture)
    source = random_ids(2, 5)
    source[1] = 0
    assert model(source, random_ids(2, 4)).isfinite().all()


@every_model
def test_beam_one_is_greedy_and_scores_are_the_models_own(architecture):
    model, source = small_baseline(architecture), random_ids(4, 7, padding=3)
    found = greedy(model, source, 6)
    for one, (other, *_) in zip(found, beam_search(model, source, beam=1, extra=6), strict=True):
        assert one.ids == other.ids
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
    for row, hypotheses in zip(source, beam_search(model, source, beam=3, extra=6), strict=True):
        alone = beam_search(model, row[row != 0][None], beam=3, extra=6)[0]
        assert [one.ids for one in alone] == [one.ids for one in hypotheses]
        for one in hypotheses:
            with torch.no_grad():
                steps = model(row[None], torch.tensor([[1, *one.ids]]))[0].log_softmax(-1)
            expected = steps.gather(-1, torch.tensor([*one.ids, 2])[:, None]).sum().item()
            assert one.log_probability == pytest.approx(expected, abs=1e-4)


@every_model
def test_the_loss_is_that_of_the_logits(architecture):
    model = small_baseline(architecture, output_bias=True)
    (batch, *_) = some_batches().epoch(0, 0)
    loss, count = batch_loss(model, batch, smoothing=0.1)
    real = batch.target_out != 0
    expected = smoothed_cross_entropy(model(batch.source, batch.target_in)[real], batch.target_out[real], 0.1)
    assert count == int(real.sum())
    torch.testing.assert_close(loss, expected)


@every_attentive
def test_recording_changes_no_output_and_a_copy_is_a_plain_one(architecture, sentences):
    model = small_baseline(architecture)
    before = model(*sentences)
    with record_attention(model) as records, silence_heads(model, {("cross", 0): [0]}):
        twin = copy.deepcopy(model)
    assert torch.equal(twin(*sentences), before)
    assert not records
    with record_attention(model):
        assert max_difference(model(*sentences), before) <= 1e-6


@every_attentive
def test_records_of_steps_are_the_rows_of_the_whole_record(architecture, sentences):
    model = small_baseline(architecture)
    source, target = sentences
    with record_attention(model) as whole:
        model(source, target)
    with record_attention(model) as steps:
        memory, cache = model.encode(source), None
        for token in target.split(1, dim=1):
            _, cache = model.step(token, memory, cache)
    rows = [record.weights for record in steps if record.layer == 0]
    assert max_difference(torch.cat(rows, dim=2), whole.find("cross", 0).weights) <= 1e-5


@every_attentive
def test_queries_and_keys_explain_the_weights_where_there_is_a_product(architecture, sentences):
    model = small_baseline(architecture)
    with record_attention(model, qk=True) as records:
        model(*sentences)
    for record in records:
        if architecture.endswith("additive"):
            assert record.query is record.key is None
        else:
            scores = record.query @ record.key.mT / 16**0.5
            hidden = (sentences[0] == 0)[:, None, None]
            assert max_difference(record.weights, scores.masked_fill(hidden, float("-inf")).softmax(-1)) <= 1e-5


@every_attentive
def test_a_silent_head_sees_no_source(architecture, sentences):
    """With all its attention silent, what a decoder knows of a source is what it starts from."""
    model = small_baseline(architecture)
    source, target = sentences
    places = {("cross", layer): [0] for _, layer, _ in model.attentions()}
    memory = model.encode(source)
    blind = replace(memory, states=torch.randn_like(memory.states))
    if architecture == "convs2s":
        blind = replace(blind, rest=(torch.randn_like(memory.states),))
    assert max_difference(model.decode(target, memory), model.decode(target, blind)) > 1e-2
    with silence_heads(model, places):
        assert torch.equal(model.decode(target, memory), model.decode(target, blind))


@every_model
def test_a_model_folder_brings_the_model_back(architecture, tmp_path, tokenizer, sentences):
    model = small_baseline(architecture, vocab_size=200, kernel=5, bidirectional=False)
    folder = save_model(tmp_path / "model", model, tokenizer, "# A card\n", half=False)
    assert json.loads((folder / "config.json").read_text())["architecture"] == architecture
    again, _ = load_model(folder)
    assert again.config == model.config
    assert torch.equal(again(*sentences), model(*sentences))


def test_a_transformers_folder_names_no_architecture_and_an_unknown_one_is_refused(tmp_path, tokenizer):
    folder = save_model(tmp_path / "model", small_model(vocab_size=200), tokenizer, "# A card\n")
    config = json.loads((folder / "config.json").read_text())
    assert "architecture" not in config
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "checksums.json"}
    for values, problem in (({**config, "architecture": "mamba"}, "architecture='mamba' is unknown"), ([1], "")):
        write_folder(folder, {**files, "config.json": json.dumps(values).encode()})
        with pytest.raises(CheckpointError, match=f"config.json does not describe a model: {problem}"):
            load_model(folder)


def fresh(architecture: str):
    torch.manual_seed(11)
    return build_model(BaselineConfig(architecture, 20, d_model=16, num_layers=2, dropout=0.1))


@pytest.mark.parametrize("architecture", ["gru", "lstm-additive", "rnn-dot", "convs2s", "bytenet"])
def test_training_learns_and_a_run_in_pieces_equals_a_run_at_once(architecture, tmp_path):
    losses = []
    chosen = settings(steps=40, peak=1e-2)
    train(fresh(architecture), some_batches(), chosen, tmp_path / "whole", report=lambda e: losses.append(e["loss"]))
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    for steps in (15, 40):
        train(fresh(architecture), some_batches(), replace(chosen, steps=steps), tmp_path / "pieces")
    whole, pieces = (latest(tmp_path / name).weights for name in ("whole", "pieces"))
    assert all(torch.equal(whole[name], pieces[name]) for name in whole)


@every_model
def test_every_weight_is_trained_and_recomputing_changes_no_gradient(architecture, tmp_path):
    def after_a_step(recompute):
        model = fresh(architecture)
        train(model, some_batches(), settings(steps=1, warmup=1, recompute=recompute), tmp_path / str(recompute))
        return dict(model.named_parameters())

    plain, recomputed, before = after_a_step(False), after_a_step(True), dict(fresh(architecture).named_parameters())
    for name, parameter in plain.items():
        torch.testing.assert_close(parameter, recomputed[name])
        assert not torch.equal(parameter, before[name]), name


def test_recurrent_layers_are_not_compiled(tmp_path):
    with pytest.raises(TrainingError, match=r"PyTorch cannot compile recurrent layers\. Leave it out"):
        train(fresh("gru"), some_batches(), settings(steps=1, compile=True), tmp_path)


@every_model
def test_a_recipe_builds_its_architecture(architecture):
    recipe = replace(SMALL, architecture=architecture, kernel=5)
    config = recipe.config()
    assert (config.architecture, config.vocab_size, config.d_model, config.kernel) == (architecture, 300, 16, 5)
    assert initial_model(recipe).config == config
    card = model_card(recipe, Checkpoint(7, {}, {}, None, {"seconds": 60.0}), 5)
    assert f"An {ARCHITECTURES[architecture].words}, 1 + 1 layers, d_model 16" in card
    assert ("windows of 5 positions" in card) == (architecture in ("convs2s", "bytenet"))
    assert "heads," not in card
    assert f"--architecture {architecture}" in card


def test_unknown_architectures_and_starts_from_another_one_are_refused(tmp_path, tokenizer):
    with pytest.raises(RecipeError, match="architecture='mamba' is unknown: choose one of transformer, rnn, gru, lstm"):
        replace(SMALL, architecture="mamba")
    folder = save_model(tmp_path / "model", small_baseline("gru", vocab_size=200), tokenizer, "# A card\n")
    with pytest.raises(RecipeError, match=r"architecture is 'gru' there and 'lstm' here\. Say the same"):
        initial_model(replace(SMALL, architecture="lstm", vocab_size=200, start=str(folder)))
    with pytest.raises(RecipeError, match="architecture is 'gru' there and 'transformer' here"):
        initial_model(replace(SMALL, vocab_size=200, num_heads=2, start=str(folder)))
    with pytest.raises(RecipeError, match="num_layers is 2 there and 1 here"):
        initial_model(replace(SMALL, architecture="gru", vocab_size=200, max_length=40, start=str(folder)))
    same = replace(SMALL, architecture="gru", vocab_size=200, num_layers=2, max_length=40, start=str(folder))
    expected = load_model(folder)[0].state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in initial_model(same).state_dict().items())


@pytest.mark.parametrize("architecture", ["gru-additive", "lstm", "convs2s"])
def test_translator_scores_and_explorer(architecture, tokenizer):
    translator = Translator(small_baseline(architecture, vocab_size=200, max_length=120), tokenizer)
    examples = list(generate("valid", 3, 1))
    texts = [one.text for one in translator([example.source for example in examples])]
    pairs = [(tokenizer.encode(example.source), tokenizer.encode(example.target)) for example in examples]
    assert perplexity(translator.model, pairs) > 1
    found, errors = microworld_scores(translator, examples, texts), alignment_errors(translator, examples)
    if architecture == "lstm":
        assert errors == {}
        assert found["alignment_error"] is found["alignment_layer"] is None
        with pytest.raises(ExplorerError, match="a model without attention records nothing"):
            explore(model=translator, text="A dog runs.")
        return
    assert set(errors) == {(layer, head) for _, layer, _ in translator.model.attentions() for head in (0, None)}
    assert found["alignment_error"] == min(errors.values())
    state = explore(model=translator, example=examples[0]).state
    assert [group["kind"] for group in state["groups"]] == ["cross"]


def test_from_the_command_line(tmp_path, capsys):
    corpus = microworld("train", 60)
    lines = [f"{source}\t{target}\n" for source, target in zip(corpus.source, corpus.target, strict=True)]
    for name, part in (("train.tsv", lines[:50]), ("valid.tsv", lines[50:])):
        (tmp_path / name).write_text("".join(part), encoding="utf-8")
    sizes = "--vocab-size 120 --d-model 16 --num-layers 1 --tokens 500 --steps 6 --warmup 2 --save-every 2 --keep 2"
    texts = ["--corpus", "files", "--train", str(tmp_path / "train.tsv"), "--valid", str(tmp_path / "valid.tsv")]
    for architecture, attentive in (("lstm-additive", True), ("bytenet", False)):
        run, two = tmp_path / architecture, tmp_path / architecture / "two"
        assert main(["train", "--folder", str(run), "--architecture", architecture, *sizes.split(), *texts]) == 0
        assert (run / "attention.png").exists() == attentive
        assert load_model(run / "model")[0].config.architecture == architecture
        assert main(["average", str(run), "--last", "2", "--output", str(two)]) == 0
        capsys.readouterr()
        assert main(["translate", "--model", str(two), "--beam", "2", "A dog runs."]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1
        assert main(["evaluate", "--model", str(two), *"--corpus microworld --count 2 --beam 1 --json".split()]) == 0
        assert (json.loads(capsys.readouterr().out)["alignment_error"] is not None) == attentive
    page = tmp_path / "page.html"
    model = tmp_path / "lstm-additive" / "model"
    assert main(["explore", "A dog runs.", "--model", str(model), "--html", str(page), "--beam", "1"]) == 0
    assert "cross-attention" in page.read_text(encoding="utf-8")
