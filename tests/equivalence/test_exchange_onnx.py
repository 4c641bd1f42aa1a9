"""Our model as ONNX: the same logits, step by step, too; our search with their engine finds the same translations."""

import json
import re

import pytest
import torch
from support import COMBINATIONS, MULTI30K, max_difference, needs_multi30k, random_ids, small_model
from support_exchange import tokenizer

from tinytransformer import Translator, record_attention
from tinytransformer.resources import data_folder
from tinytransformer.text.corpus import microworld, multi30k
from tinytransformer.training.checkpoints import CheckpointError, find_model, load_model
from tinytransformer.translation.evaluation import score
from tinytransformer.translation.exchange.formats import ExchangeError
from tinytransformer.translation.exchange.marian import export_marian
from tinytransformer.translation.exchange.marian_import import read_marian
from tinytransformer.translation.exchange.onnx_export import GRAPHS, export_onnx
from tinytransformer.translation.exchange.onnx_int8 import LARGEST, MIDDLE, REACH, rounded
from tinytransformer.translation.exchange.onnx_model import OnnxModel, load_onnx, onnx_translator

onnx = pytest.importorskip("onnx", reason="onnx is in requirements-exchange.txt")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in requirements-exchange.txt")
VARIANTS = [
    *({"norm": norm, "positions": positions} for norm, positions in COMBINATIONS),
    {"activation": "gelu", "output_bias": True},
    {"activation": "silu", "tie_embeddings": False},
    {"tie_embeddings": False, "output_bias": True, "norm": "pre"},
    {"d_k": 6, "d_v": 5},
    {"window": 2, "positions": "rotary"},
    {"num_layers": 1, "num_heads": 1},
    {"pad_id": 30, "start_id": 30, "end_id": 0},  # as Marian's
]


def exported(model, folder, **settings) -> OnnxModel:
    export_onnx(model, tokenizer(), folder, **settings)
    return OnnxModel(folder, model.config)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_logits(changes, tmp_path):
    ours = small_model(**changes)
    theirs = exported(ours, tmp_path / "out")
    for size, source_length, target_length in ((4, 11, 8), (1, 2, 1)):
        source, target = random_ids(size, source_length), random_ids(size, target_length)
        source[1:, -5:] = ours.config.pad_id
        with torch.no_grad():
            expected = ours(source, target)
            assert max_difference(theirs(source, target), expected) <= 1e-5
            states, memory = ours.encode(source).states, theirs.encode(source)
        real = memory.mask[:, 0, 0]
        assert torch.equal(real, source != ours.config.pad_id)
        assert max_difference(memory.states[real], states[real]) <= 1e-5
    assert expected.abs().max() > 0.5, "the comparison would be empty"


@pytest.mark.parametrize(
    "changes", [{}, {"positions": "rotary", "norm": "pre"}, {"window": 1}, {"d_k": 6, "d_v": 5}], ids=str
)
def test_one_token_at_a_time_while_rows_change_places(changes, tmp_path):
    ours = small_model(**changes)
    theirs = exported(ours, tmp_path / "out")
    source, caches = random_ids(3, 9, padding=4), [None, None]
    memories = [model.encode(source) for model in (ours, theirs)]
    grow = torch.tensor([[0, 0], [1, 1], [2, 2]])  # two translations of each sentence
    leave, swap = torch.tensor([[5, 4], [0, 1]]), torch.tensor([1, 0, 2, 2])
    for change, rows in ((None, 3), (None, 3), ("select", 6), ("select", 4), ("reorder", 4), (None, 4)):
        if change:
            order = {6: grow, 4: leave if change == "select" else swap}[rows]
            caches = [getattr(cache, change)(order) for cache in caches]
        tokens = random_ids(rows, 1)
        with torch.no_grad():
            (expected, ours_kept), (found, theirs_kept) = (
                model.step(tokens, memory, cache)
                for model, memory, cache in zip((ours, theirs), memories, caches, strict=True)
            )
        assert max_difference(found, expected) <= 1e-5
        caches = [ours_kept, theirs_kept]
        assert (theirs_kept.length, theirs_kept.rows) == (ours_kept.length, rows)
    with pytest.raises(ValueError, match="target has 3 rows but the source has 4"):
        theirs.step(tokens[:3], memories[1], caches[1])


def test_memory_can_be_selected_and_ids_are_checked(tmp_path):
    ours = small_model()
    theirs = exported(ours, tmp_path / "out")
    source, tokens, rows = random_ids(3, 9, padding=4), random_ids(2, 1), torch.tensor([2, 0])
    with torch.no_grad():
        found, _ = theirs.step(tokens, theirs.encode(source).select(rows))
        assert max_difference(found, ours.step(tokens, ours.encode(source).select(rows))[0]) <= 1e-5
    with pytest.raises(ValueError, match="source ids run from 3 to 99, outside the vocabulary"):
        theirs.encode(torch.tensor([[3, 99]]))
    with pytest.raises(ValueError, match="source has 41 tokens but max_length=40"):
        theirs.encode(torch.ones(1, 41).long())


@pytest.mark.parametrize("int8", [False, True])
def test_the_files_are_valid_and_share_their_weights(int8, tmp_path, capfd):
    ours, pieces = load_model(find_model("microworld-en-de"))
    folder = export_onnx(ours, pieces, tmp_path / "out", int8)
    load_onnx(folder)
    assert capfd.readouterr() == ("", "")
    places = {}
    for name in GRAPHS[:2]:
        onnx.checker.check_model(folder / name, full_check=True)
        model = onnx.load(folder / name, load_external_data=False)
        assert "present.0.key" in model.doc_string
        for tensor in model.graph.initializer:
            for key, value in ((entry.key, entry.value) for entry in tensor.external_data):
                places.setdefault(tensor.name, {}).setdefault(key, set()).add(value)
    assert all(len(values) == 1 for place in places.values() for values in place.values())
    lengths = {name: int(*place["length"]) for name, place in places.items()}
    assert lengths["embedding.tokens"] == ours.embedding.tokens.numel() * (1 if int8 else 4)
    slack = (folder / "weights.bin").stat().st_size - sum(lengths.values())
    assert 0 <= slack < 64 * len(lengths), "nothing is stored twice"


def same_translations(name: str, folder, texts) -> None:
    ours = Translator.load(name, "cpu")
    theirs = onnx_translator(export_onnx(ours.model, ours.tokenizer, folder))
    assert theirs.name == folder.name
    for beam in (4, 1):
        expected, found = ours(texts, beam), theirs(texts, beam)
        assert [one.ids for one in found] == [one.ids for one in expected]
        assert [one.text for one in found] == [one.text for one in expected]
        assert max(abs(a.score - b.score) for a, b in zip(found, expected, strict=True)) <= 1e-4


def test_two_hundred_sentences_token_for_token(tmp_path):
    same_translations("microworld-en-de", tmp_path / "out", microworld("test", 200).source)


@needs_multi30k
def test_photo_captions_token_for_token(tmp_path):
    same_translations("multi30k-en-de", tmp_path / "out", multi30k("test_2016_flickr", folder=MULTI30K).source[:300])


def test_batches_side_by_side(tmp_path):
    ours = Translator.load("microworld-en-de", "cpu")
    theirs = onnx_translator(export_onnx(ours.model, ours.tokenizer, tmp_path / "out"))
    texts = microworld("valid", 130).source  # three batches
    expected = [one.ids for one in theirs(texts, 1)]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert [one.ids for one in theirs(texts, 1)] == expected
    finally:
        torch.set_num_threads(before)


def test_the_folder_needs_nothing_of_ours(tmp_path):
    """Greedy decoding with onnxruntime and arrays alone, as a program in another language would do it."""
    import numpy as np

    ours = Translator.load("microworld-en-de", "cpu")
    folder = export_onnx(ours.model, ours.tokenizer, tmp_path / "out")
    encoder, decoder = (onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("encoder", "decoder"))
    config = json.loads((folder / "config.json").read_text())
    ids = ours.tokenizer.encode("The dog sleeps.")
    values = encoder.run(None, {"source": np.array([[*ids, config["end_id"]]])})
    given = {output.name: value for output, value in zip(encoder.get_outputs(), values, strict=True)}
    del given["states"]
    size = config["d_model"] // config["num_heads"]
    past = {f"past.{n}.{part}": np.zeros((1, config["num_heads"], 0, size), np.float32)
            for n in range(config["num_layers"]) for part in ("key", "value")}  # fmt: skip
    written = [config["start_id"]]
    while written[-1] != config["end_id"]:
        values = decoder.run(None, {**given, **past, "tokens": np.array([written[-1:]])})
        found = {output.name: value for output, value in zip(decoder.get_outputs(), values, strict=True)}
        written.append(int(found.pop("logits")[0, -1].argmax()))
        past = {name.replace("present", "past"): value for name, value in found.items()}
    assert tuple(written[1:-1]) == ours("The dog sleeps.", beam=1).ids


def test_a_model_that_came_from_marian_goes_on_to_onnx(tmp_path):
    ours = Translator.load("microworld-en-de", "cpu")
    model, pieces = read_marian(export_marian(ours.model, ours.tokenizer, tmp_path / "marian"))
    theirs = onnx_translator(export_onnx(model, pieces, tmp_path / "out"))
    assert theirs("The dog sleeps.").text == ours("The dog sleeps.").text


def test_there_is_nothing_to_look_at_inside(tmp_path):
    ours = small_model()
    theirs = exported(ours, tmp_path / "out")
    with record_attention(theirs) as records:
        theirs(random_ids(1, 3), random_ids(1, 2))
    assert records == []
    assert not list(theirs.parameters())


# 8-bit integers


def weight_bytes(folder) -> int:
    return sum((folder / name).stat().st_size for name in GRAPHS)


@pytest.mark.parametrize("name", ["microworld-en-de", "multi30k-en-de"])
def test_int8_is_a_third_of_the_size_or_less(name, tmp_path):
    model, pieces = load_model(find_model(name))
    full = sum(parameter.numel() * 4 for parameter in model.parameters())
    assert full >= 3 * weight_bytes(export_onnx(model, pieces, tmp_path / "small", int8=True))
    assert full <= weight_bytes(export_onnx(model, pieces, tmp_path / "full")) <= 1.05 * full


def int8_loss(name: str, folder, corpus) -> float:
    """How many points of BLEU 8-bit integers cost."""
    ours = Translator.load(name, "cpu")
    theirs = onnx_translator(export_onnx(ours.model, ours.tokenizer, folder, int8=True))
    texts = [[one.text for one in translator(corpus.source)] for translator in (ours, theirs)]
    before, after = (score(found, corpus.target).bleu for found in texts)
    assert before > 30, "the comparison would be empty"
    return before - after


def test_int8_costs_less_than_half_a_point_in_the_microworld(tmp_path):
    assert int8_loss("microworld-en-de", tmp_path / "out", microworld("test", 200)) <= 0.5


@needs_multi30k
def test_int8_costs_less_than_half_a_point_on_photo_captions(tmp_path):
    assert int8_loss("multi30k-en-de", tmp_path / "out", multi30k("test_2016_flickr", folder=MULTI30K)) <= 0.5


def test_int8_translates_a_sentence_alike_whatever_stands_beside_it(tmp_path):
    ours = Translator.load("microworld-en-de", "cpu")
    theirs = onnx_translator(export_onnx(ours.model, ours.tokenizer, tmp_path / "out", int8=True))
    texts = microworld("test", 30).source
    assert [one.ids for one in theirs(texts)] == [theirs(text).ids for text in texts]


@pytest.mark.parametrize(
    "changes", [{}, {"tie_embeddings": False, "output_bias": True}, {"positions": "rotary"}], ids=str
)
def test_int8_logits_are_near(changes, tmp_path):
    ours = small_model(**changes)
    theirs = exported(ours, tmp_path / "out", int8=True)
    source, target = random_ids(4, 11, padding=5), random_ids(4, 8)
    with torch.no_grad():
        expected, found = ours(source, target), theirs(source, target)
    assert 0 < max_difference(found, expected) <= 0.3 * expected.std()


def test_rounding_moves_no_number_by_more_than_half_a_step():
    matrix = torch.randn(6, 40) * torch.logspace(-3, 3, 6)[:, None]
    matrix[2] = 0
    numbers, factors = rounded(matrix)
    assert numbers.dtype == torch.int8
    assert numbers.abs().amax(1).tolist() == [LARGEST, LARGEST, 0, LARGEST, LARGEST, LARGEST]
    errors = (numbers * factors[:, None] - matrix).abs().amax(1)
    assert (errors <= 0.501 * factors).all()
    assert 2 * (MIDDLE + REACH) * LARGEST < 2**15, "older processors add two products in 16 bits"


# Refusals


def test_an_older_kind_of_model_is_not_exported(tmp_path):
    with pytest.raises(ExchangeError, match="ONNX cannot run this model: it is a lstm, not a Transformer"):
        export_onnx(*load_model(find_model("microworld-lstm")), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ExchangeError, match="exists and is not empty: name a new folder"):
        export_onnx(small_model(), tokenizer(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("weights.bin", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "weights.bin is damaged: its checksum differs"),
        ("decoder.onnx", lambda data: data[: len(data) // 2], "decoder.onnx is damaged"),
        ("encoder.onnx", None, "is not a model folder: it has no encoder.onnx"),
        ("config.json", lambda data: data + b" ", "config.json is damaged"),
    ],
)
def test_a_damaged_folder_is_not_run(name, damage, message, tmp_path):
    path = export_onnx(small_model(), tokenizer(), tmp_path / "out") / name
    data = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(data))
    with pytest.raises(CheckpointError, match=message):
        load_onnx(tmp_path / "out")


def test_a_folder_of_ours_is_not_taken_for_one_of_onnx():
    with pytest.raises(CheckpointError, match=re.escape("it has no encoder.onnx, decoder.onnx, weights.bin")):
        load_onnx(find_model("microworld-en-de"))


def test_the_stored_results_are_of_the_shipped_models_and_say_what_is_claimed():
    rows = json.loads((data_folder("results") / "exchange.json").read_text(encoding="utf-8"))["rows"]
    assert [row["model"] for row in rows] == ["microworld-en-de", "multi30k-en-de"]
    for row in rows:
        sums = json.loads((find_model(row["model"]) / "checksums.json").read_text(encoding="utf-8"))
        assert row["weights"] == sums["model.safetensors"], "another model was measured: run benchmarks/exchange.py"
        engines = {one["engine"]: one for one in row["engines"]}
        int8 = engines.pop("onnxruntime int8")
        assert int8["bleu_ours"] - int8["bleu"] <= 0.5
        assert int8["smaller_than_float32_by"] >= 3
        assert set(engines) == {"onnxruntime", "transformers", "ctranslate2"}
        for one in engines.values():
            assert one["identical"] + one["of_these"]["ties within 0.0001"] == one["sentences"]
