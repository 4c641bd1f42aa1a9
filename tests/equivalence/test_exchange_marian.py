"""Our model is Marian's: exported it gives the same logits and translations there, imported the same ones here."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from support import MULTI30K, max_difference, needs_multi30k, randomise
from support_exchange import in_batches, marian_folder, marian_tokenizer_files, power, searched, tokenizer

from tinytransformer import Transformer, TransformerConfig, Translator, explore
from tinytransformer.text.batching import pad
from tinytransformer.text.corpus import microworld, multi30k
from tinytransformer.text.marian_tokenizer import MarianTokenizer
from tinytransformer.text.tokenizer import TokenizerError
from tinytransformer.training.checkpoints import CheckpointError, find_model, load_model
from tinytransformer.translation.beam_search import beam_search
from tinytransformer.translation.exchange.formats import ExchangeError
from tinytransformer.translation.exchange.marian import export_marian
from tinytransformer.translation.exchange.marian_import import import_marian, read_marian

transformers = pytest.importorskip("transformers", reason="transformers is a test-only dependency")
no_moses = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses:UserWarning")
SENTENCES = ["The dog sleeps.", "The children see the big house.", "She gives him the book, because he asked ☃."]


def own_model(**changes) -> Transformer:
    sizes = {"vocab_size": len(tokenizer()), "d_model": 32, "num_heads": 4, "d_ff": 48, "num_layers": 2}
    torch.manual_seed(1)
    return randomise(Transformer(TransformerConfig(**{**sizes, "max_length": 40, **changes}))).eval()


def opened(folder):
    """What anybody does with the folder, who has never heard of us."""
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def same_logits(ours, theirs, vocabulary: int, tolerance: float) -> None:
    c = ours.config
    source, target = (torch.randint(3, vocabulary - 1, (4, length)) for length in (11, 8))
    source[1:, -4:] = c.pad_id
    target[:, 0] = c.start_id
    mask = (source != c.pad_id).long()
    with torch.no_grad():
        expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
        assert max_difference(ours(source, target), expected) <= tolerance
    assert expected.abs().max() > 1, "the comparison would be empty"


@pytest.mark.parametrize(("norm", "family"), [("post", "MarianMTModel"), ("pre", "PegasusForConditionalGeneration")])
@pytest.mark.parametrize("output_bias", [False, True])
def test_an_exported_model_has_our_logits(norm, family, output_bias, tmp_path):
    ours = own_model(norm=norm, output_bias=output_bias, activation="gelu" if output_bias else "relu")
    theirs = opened(export_marian(ours, tokenizer(), tmp_path / "out"))
    assert type(theirs).__name__ == family
    same_logits(ours, theirs, len(tokenizer()), 1e-5)


@no_moses
def test_a_shipped_model_translates_the_same_there_with_its_own_tokenizer(tmp_path):
    """From text to text: their tokenizer, their model, their search with what the folder says; no word of ours."""
    ours = Translator.load("microworld-en-de", "cpu")
    folder = export_marian(ours.model, ours.tokenizer, tmp_path / "out")
    pieces = transformers.AutoTokenizer.from_pretrained(folder)
    batch = pieces(SENTENCES, return_tensors="pt", padding=True)
    assert batch["input_ids"].tolist() == pad([[*ours.tokenizer.encode(one), 2] for one in SENTENCES]).tolist()
    found = opened(folder).generate(**batch)
    expected = [best[0].ids for best in beam_search(ours.model, batch["input_ids"], penalty=power)]
    assert [tuple(row[1 : row.index(2)]) for row in found.tolist()] == expected
    assert pieces.batch_decode(found, skip_special_tokens=True) == [ours.tokenizer.decode(ids) for ids in expected]


def generated(ours: Translator, folder, texts) -> list[tuple[int, ...]]:
    """What their search finds with the settings of the folder."""
    theirs, rows = opened(folder), []
    for batch in in_batches(ours, texts):
        rows += theirs.generate(input_ids=batch, attention_mask=(batch != 0).long()).tolist()
    return [tuple(row[1 : row.index(2)]) for row in rows]


def test_two_hundred_sentences_token_for_token(tmp_path):
    ours, texts = Translator.load("microworld-en-de", "cpu"), microworld("test", 200).source
    folder = export_marian(ours.model, ours.tokenizer, tmp_path / "out")
    assert generated(ours, folder, texts) == searched(ours, texts)


@needs_multi30k
def test_photo_captions_token_for_token(tmp_path):
    ours, texts = Translator.load("multi30k-en-de", "cpu"), multi30k("test_2016_flickr", folder=MULTI30K).source[:150]
    folder = export_marian(ours.model, ours.tokenizer, tmp_path / "out")
    assert generated(ours, folder, texts) == searched(ours, texts)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_export_comes_back_bit_for_bit(norm, tmp_path):
    ours = own_model(norm=norm, output_bias=True)
    export_marian(ours, tokenizer(), tmp_path / "out")
    model, pieces = load_model(import_marian(tmp_path / "out", tmp_path / "back"))
    assert model.config == ours.config
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in ours.state_dict().items())
    for text in SENTENCES:
        ids = tokenizer().encode(text)
        assert pieces.encode(text) == ids
        assert pieces.decode([*ids, 2, 5]) == tokenizer().decode(ids)


@pytest.mark.parametrize("activation", ["swish", "relu", "gelu"])
def test_an_imported_model_has_marians_logits(activation, tmp_path):
    folder = marian_folder(tmp_path / "opus", activation_function=activation)
    model, pieces = load_model(import_marian(folder, tmp_path / "ours"))
    assert (model.config.start_id, model.config.end_id) == (model.config.pad_id, 0)
    same_logits(model, opened(folder), len(pieces), 1e-4)


def test_the_size_of_opus_mt(tmp_path):
    """d 512, 6 + 6 layers, 8 heads, 2048: the shape of almost every model there, but for its 58,101 pieces."""
    base = {"layers": 6, "attention_heads": 8, "ffn_dim": 2048}
    sizes = {f"{stack}_{name}": value for stack in ("encoder", "decoder") for name, value in base.items()}
    folder = marian_folder(tmp_path / "opus", d_model=512, max_position_embeddings=512, **sizes)
    model, pieces = read_marian(folder)
    assert sum(p.numel() for p in model.parameters()) > 44_000_000
    same_logits(model, opened(folder), len(pieces), 1e-4)


@no_moses
def test_an_imported_model_translates_like_marian_and_can_be_explored(tmp_path):
    folder = marian_folder(tmp_path / "opus", d_model=64)
    translator = Translator.load(import_marian(folder, tmp_path / "ours"), "cpu")
    theirs, pieces = opened(folder), transformers.AutoTokenizer.from_pretrained(folder)
    for text in SENTENCES:
        ids = translator.tokenizer.encode(text)
        assert pieces(text)["input_ids"] == [*ids, 0]
        source = torch.tensor([[*ids, 0]])
        best = beam_search(translator.model, source, extra=10, penalty=power)[0][0].ids
        limits = {"max_new_tokens": len(ids) + 12, "forced_eos_token_id": None, "bad_words_ids": [[len(pieces) - 1]]}
        found = theirs.generate(source, num_beams=4, length_penalty=0.6, early_stopping=True, **limits)[0].tolist()
        assert tuple(found[1 : found.index(0, 1)]) == best
        assert translator.tokenizer.decode(best) == pieces.decode(best, skip_special_tokens=True)
    together = translator(SENTENCES)  # padded with 58100, so to speak
    assert [one.text for one in together] == [translator(text).text for text in SENTENCES]
    explorer = explore(model=translator, text=SENTENCES[0])
    assert [group.kind for group in explorer.groups] == ["encoder", "decoder", "cross"]
    assert explorer.groups[2].keys[-1] == "</s>"
    assert explorer.groups[2].queries[0] == "<pad>"
    assert explorer.save_html(tmp_path / "page.html").stat().st_size > 10_000


@no_moses
def test_marians_tokenizer_knows_language_codes(tmp_path):
    files = marian_tokenizer_files()
    ids = json.loads(files["vocab.json"])
    ids[">>fr<<"] = len(ids)
    for name, data in {**files, "vocab.json": json.dumps(ids).encode()}.items():
        (tmp_path / name).write_bytes(data)
    ours, theirs = MarianTokenizer.load(tmp_path), transformers.MarianTokenizer.from_pretrained(tmp_path)
    for text in (">>fr<< the dog", "the >>fr<< dog", ">>xx<< dog", ""):
        assert [*ours.encode(text), 0] == theirs(text)["input_ids"]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return marian_folder(tmp_path_factory.mktemp("marian") / "opus")


def broken(good, tmp_path, **config):
    folder = shutil.copytree(good, tmp_path / "bad")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **config}))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bart"}, "model_type='bart' cannot be imported: choose a folder of marian or pegasus"),
        ({"activation_function": "gelu_new"}, "activation_function='gelu_new' cannot be imported: we have relu, gelu"),
        ({"scale_embedding": False}, "scale_embedding=False cannot be imported: our model is built for True"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=False cannot be imported"),
        ({"normalize_embedding": True}, "normalize_embedding=True cannot be imported"),
        ({"decoder_layers": 1}, "encoder_layers=2 but decoder_layers=1: our two stacks are of one size"),
        ({"encoder_ffn_dim": 40, "decoder_ffn_dim": 40}, r"fc1.weight has the shape \(48, 32\), but by config.json it"),
        ({"encoder_layers": 3, "decoder_layers": 3}, "has no model.encoder.layers.2.self_attn.q_proj.weight"),
        ({"encoder_layers": 1, "decoder_layers": 1}, "our model has no part for model.decoder.layers.1"),
        ({"vocab_size": 400}, "pieces, but the model 400: they do not belong together"),
        ({"encoder_attention_heads": 5, "decoder_attention_heads": 5}, "d_model=32 is not divisible by num_heads=5"),
        ({"eos_token_id": 4000}, "end_id=4000 is outside the vocabulary"),
    ],
)
def test_a_foreign_description_is_refused(good, tmp_path, change, message):
    with pytest.raises(ExchangeError, match=message):
        import_marian(broken(good, tmp_path, **change), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("name", "damage", "kind", "message"),
    [
        ("model.safetensors", truncate, CheckpointError, "is not a whole safetensors file"),
        ("config.json", truncate, ExchangeError, "config.json is not JSON .* was the file cut short"),
        ("vocab.json", truncate, TokenizerError, "vocab.json is not JSON .* was the file cut short"),
        ("source.spm", truncate, TokenizerError, "source.spm is not a sentencepiece model: was the file cut short"),
        ("vocab.json", lambda path: path.unlink(), TokenizerError, "there is no vocab.json in .* needs all three"),
        ("vocab.json", lambda path: path.write_text('{"a": 0}'), TokenizerError, "has no <pad>, </s>, <unk>"),
        ("vocab.json", lambda path: path.write_text('{"a": 3}'), TokenizerError, "ids of vocab.json must be 0 … 0"),
        ("vocab.json", lambda path: path.write_text("[1]"), TokenizerError, "must be one object that gives every"),
        ("config.json", lambda path: path.write_text("[]"), ExchangeError, "must be one JSON object"),
        ("config.json", lambda path: path.unlink(), ExchangeError, "is not a Marian folder: it has no config.json"),
        ("model.safetensors", lambda path: path.unlink(), ExchangeError, "it has no model.safetensors"),
        (
            "model.safetensors",
            lambda path: path.rename(path.with_name("pytorch_model.bin")),
            ExchangeError,
            "in pytorch_model.bin, a pickle, which is not opened: write it as safetensors once",
        ),
    ],
)
def test_a_damaged_folder_is_refused(good, tmp_path, name, damage, kind, message):
    folder = broken(good, tmp_path)
    damage(folder / name)
    with pytest.raises(kind, match=message):
        import_marian(folder, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lm_head.weight", "lm_head.weight differs from model.shared.weight"),
        ("model.encoder.embed_positions.weight", "is not the table of sinusoids"),
        ("model.extra", "our model has no part for model.extra"),
    ],
)
def test_tensors_of_another_model_are_refused(good, tmp_path, name, message):
    folder = broken(good, tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights[name] = torch.randn_like(weights["model.shared.weight"])
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ExchangeError, match=message):
        import_marian(folder, tmp_path / "ours")


def test_what_marian_has_no_word_for_is_not_exported(tmp_path):
    with pytest.raises(ExchangeError, match="Marian cannot run this model: positions='rotary', and only 'sinusoidal'"):
        export_marian(own_model(positions="rotary"), tokenizer(), tmp_path / "out")
    with pytest.raises(ExchangeError, match="it is a lstm, not a Transformer"):
        export_marian(load_model(find_model("microworld-lstm"))[0], tokenizer(), tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(ExchangeError, match="exists and is not empty: name a new folder"):
        export_marian(own_model(), tokenizer(), tmp_path / "full")
    with pytest.raises(ExchangeError, match="exists and is not empty: name a new folder"):
        import_marian(tmp_path / "full", tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_exported_sinusoids_are_those_that_their_library_makes(norm, tmp_path):
    """They travel with the weights, but whoever makes them anew must get the same ones."""
    ours = own_model(norm=norm)
    theirs = opened(export_marian(ours, tokenizer(), tmp_path / "out"))
    fresh = type(theirs)(theirs.config)
    for stack in ("encoder", "decoder"):
        own, made = (getattr(one.model, stack).embed_positions.weight for one in (theirs, fresh))
        assert max_difference(own, made) <= 1e-5
