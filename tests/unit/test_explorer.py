"""What the explorer makes of attention before a browser draws it: checked, aggregated, packed, saved."""

import base64
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import random_ids, small_model
from transformers import BertConfig, BertModel, MarianConfig, MarianMTModel

from tinytransformer import Translator, explore, record_attention
from tinytransformer.cli import main
from tinytransformer.inspection import plots
from tinytransformer.inspection.explorer import ExplorerError
from tinytransformer.inspection.explorer.aggregates import cross_rollout, over_layers, rollout, rollouts
from tinytransformer.inspection.explorer.data import MOST_TOKENS, from_records, from_weights
from tinytransformer.inspection.explorer.gold import alignment_cells, mass
from tinytransformer.inspection.explorer.interventions import difference, heads_of, importance
from tinytransformer.inspection.explorer.page import page_of
from tinytransformer.inspection.explorer.state import HEAD_COLOURS, NEURON_BYTES, packed_weights, state_of
from tinytransformer.model.recording import AttentionRecord
from tinytransformer.text.microworld import generate
from tinytransformer.translation.evaluation import alignment_errors

# Three queries and five keys, every weight another one: a transposed picture cannot pass.
PATTERN = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
PATTERN /= PATTERN.sum(-1, keepdims=True)
QUERIES, KEYS = ("Ein", "Hund", "läuft"), ("A", "dog", "runs", ".", "</s>")


def weights_at(packed: str, *shape: int, mask: np.ndarray | None = None) -> np.ndarray:
    """The weights that a page would read from a packed text."""
    numbers = np.frombuffer(base64.b64decode(packed), dtype="<u2") / 10_000
    if mask is None:
        return numbers.reshape(shape)
    full = np.zeros(shape)
    full[..., mask] = numbers.reshape(*shape[:-2], -1)
    return full


def softmax(*shape: int, causal: bool = False) -> np.ndarray:
    scores = torch.randn(*shape)
    if causal:
        scores = scores.masked_fill(~torch.ones(shape[-2:]).tril().bool(), float("-inf"))
    return scores.softmax(-1).numpy()


def record(kind="cross", layer=0, weights=PATTERN[None, None], queries=QUERIES, keys=KEYS, **qk) -> AttentionRecord:
    return AttentionRecord(kind, layer, torch.as_tensor(weights), query_tokens=queries, key_tokens=keys, **qk)


@pytest.fixture(scope="module")
def translator():
    return Translator.load("microworld-en-de", "cpu")


def test_a_rectangular_pattern_keeps_its_tokens():
    (group,) = explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS).state["groups"]
    assert (group["queries"], group["keys"]) == (list(QUERIES), list(KEYS))
    np.testing.assert_allclose(weights_at(group["layers"][0]["weights"], 3, 5), PATTERN, atol=5e-5)
    assert "rollout" not in group["overall"], "rectangular weights of unknown kind cannot be multiplied"


@pytest.mark.parametrize("scale", [1, 1e-4])
def test_the_page_shows_the_digits_that_python_prints(scale):
    weights = torch.rand(2000, dtype=torch.float64).numpy() * scale
    weights[:3] = 0.03125, 0.5, 1.0  # the first is a tie: 312.5 ten-thousandths
    page = weights_at(packed_weights(weights), 2000)
    assert np.abs(page - weights).max() <= 0.5e-4 + 1e-12
    assert [f"{one:.4f}" for one in page] == [f"{one:.4f}" for one in weights]


def test_records_of_a_model_are_drawn_as_they_are():
    model = small_model()
    with record_attention(model, qk=True) as records, torch.no_grad():
        model(random_ids(2, 7), random_ids(2, 5))
    source, target = tuple("abcdefg"), tuple("vwxyz")
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    named = [replace(one, query_tokens=sides[one.kind][0], key_tokens=sides[one.kind][1]) for one in records]
    state = explore(named, sentence=1).state
    assert [group["kind"] for group in state["groups"]] == ["encoder", "decoder", "cross"]
    causal = np.tril(np.ones((5, 5), dtype=bool))
    for group in state["groups"]:
        mask = causal if group["kind"] == "decoder" else None
        for layer in group["layers"]:
            shape = (4, len(group["queries"]), len(group["keys"]))
            own = records.find(group["kind"], layer["number"])
            np.testing.assert_allclose(weights_at(layer["weights"], *shape, mask=mask), own.weights[1], atol=5.001e-5)
            query = np.frombuffer(base64.b64decode(layer["query"]), dtype="<f4").reshape(4, len(group["queries"]), 4)
            np.testing.assert_array_equal(query, own.query[1])
    assert [bool(group["mask"]) for group in state["groups"]] == [False, True, False]
    mask = np.frombuffer(base64.b64decode(state["groups"][1]["mask"]), dtype=np.uint8).reshape(5, 5)
    np.testing.assert_array_equal(mask, causal)


def test_of_one_kind_and_layer_the_newest_record_counts():
    old, new = record(weights=np.full((1, 1, 3, 5), 0.2)), record()
    (group,) = from_records([old, new])
    np.testing.assert_array_equal(group.layers[0].weights[0], PATTERN)


def test_a_decoder_that_sees_the_future_is_not_called_masked():
    (group,) = from_weights(softmax(2, 4, 4), "abcd", kind="decoder")
    assert group.mask is None


def test_rollout_by_hand():
    first, second = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    # Half the residual: [[1, 0], [.25, .75]], then [[.5, .5], [.5, .5]]; their product has both rows the same.
    np.testing.assert_allclose(rollout([first, second]), [[0.625, 0.375], [0.625, 0.375]])
    np.testing.assert_allclose(rollout([second, first]), [[0.5, 0.5], [0.5, 0.5]])


def test_cross_rollout_by_hand():
    cross = [np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])]
    decoder = [np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])]
    # After layer 0 half of each state: [.5, 0, 0] and [0, 0, .5]. In layer 1 self-attention mixes half of the first
    # state into the second: [.25, 0, .25]. Halved again, with half of the second cross-attention added.
    expected = np.array([[0.25, 0.5, 0.0], [0.125, 0.0, 0.625]]) / 0.75
    np.testing.assert_allclose(cross_rollout(cross, decoder, None), expected)
    swap = np.eye(3)[[1, 0, 2]]
    np.testing.assert_allclose(cross_rollout(cross, decoder, swap), expected[:, [1, 0, 2]])


def test_rollouts_of_a_translator_are_shares(translator):
    groups = explore(model=translator, text="My dog was hungry.").groups
    found = rollouts(groups)
    assert set(found) == {"encoder", "decoder", "cross"}
    for group in groups:
        assert found[group.kind].shape == (len(group.queries), len(group.keys))
        np.testing.assert_allclose(found[group.kind].sum(-1), 1, atol=1e-6)
    assert np.triu(found["decoder"], 1).max() == 0, "no share from the future"


def test_means_and_maxima_over_heads_and_layers():
    weights = softmax(3, 2, 4, 4)
    (group,) = explore(weights=weights, query_tokens="abcd").state["groups"]
    for number, layer in enumerate(group["layers"]):
        np.testing.assert_allclose(weights_at(layer["mean"], 4, 4), weights[number].mean(0), atol=5.001e-5)
        np.testing.assert_allclose(weights_at(layer["max"], 4, 4), weights[number].max(0), atol=5.001e-5)
    np.testing.assert_allclose(weights_at(group["overall"]["mean"], 4, 4), weights.mean((0, 1)), atol=5.001e-5)
    np.testing.assert_allclose(weights_at(group["overall"]["max"], 4, 4), weights.max((0, 1)), atol=5.001e-5)


def test_layers_may_have_different_numbers_of_heads():
    (group,) = from_weights([softmax(2, 3, 3), softmax(4, 3, 3)], "abc")
    assert [len(layer.weights) for layer in group.layers] == [2, 4]
    np.testing.assert_allclose(
        over_layers(group)["mean"], np.mean([layer.weights.mean(0) for layer in group.layers], axis=0), rtol=1e-6
    )


def test_slices_cut_rows_and_columns_and_keep_the_rollout_of_the_whole():
    weights = softmax(2, 1, 6, 6)
    cut = explore(weights=weights, query_tokens="abcdef", queries=slice(1, 3), keys=slice(2, 6))
    (group,) = cut.state["groups"]
    assert (group["queries"], group["keys"]) == (["b", "c"], ["c", "d", "e", "f"])
    np.testing.assert_allclose(weights_at(group["layers"][0]["weights"], 2, 4), weights[0, 0, 1:3, 2:6], atol=5.001e-5)
    whole = rollout([one.mean(0) for one in weights])
    np.testing.assert_allclose(weights_at(group["overall"]["rollout"], 2, 4), whole[1:3, 2:6], atol=5.001e-5)


def test_neuron_data_goes_along_for_the_layers_asked_for_or_those_that_are_small():
    def numbers(size, layers=None):
        vectors = {name: torch.zeros(1, 1, length, size) for name, length in (("query", 3), ("key", 5))}
        groups = from_records([record(layer=layer, **vectors) for layer in range(3)])
        return [layer["number"] for layer in state_of(groups, layers)["groups"][0]["layers"] if "query" in layer]

    assert numbers(4) == [0, 1, 2]
    assert numbers(4, [1]) == [1]
    room_for_two = NEURON_BYTES // (8 * 4 * 2)
    assert numbers(room_for_two) == [1, 2], "the last layers first"
    assert numbers(3 * room_for_two) == []
    assert numbers(3 * room_for_two, [0]) == [0], "who asks gets it"


bert = BertConfig(
    vocab_size=20, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=8,
    attn_implementation="eager",
)  # fmt: skip


def test_a_hugging_face_encoder():
    model = BertModel(bert).eval()
    with torch.no_grad():
        found = model(torch.tensor([[2, 5, 7, 3]]), output_attentions=True).attentions
    state = explore(weights=found, query_tokens=["[CLS]", "a", "dog", "[SEP]"]).state
    assert [layer["heads"] for layer in state["groups"][0]["layers"]] == [4, 4, 4]
    for layer, own in zip(state["groups"][0]["layers"], found, strict=True):
        np.testing.assert_allclose(weights_at(layer["weights"], 4, 4, 4), own[0], atol=5.001e-5)


def test_a_hugging_face_translator():
    config = MarianConfig(
        vocab_size=20, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=4, encoder_ffn_dim=8, decoder_ffn_dim=8, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    source, target = ("▁a", "▁dog", "</s>"), ("<s>", "▁ein", "▁Hund", "</s>")
    with torch.no_grad():
        found = MarianMTModel(config).eval()(
            torch.tensor([[4, 5, 2]]), decoder_input_ids=torch.tensor([[1, 6, 7, 2]]), output_attentions=True
        )
    kinds = {
        "encoder": (found.encoder_attentions, source, source),
        "decoder": (found.decoder_attentions, target, target),
        "cross": (found.cross_attentions, target, source),
    }
    records = [
        AttentionRecord(kind, layer, weights, query_tokens=queries, key_tokens=keys)
        for kind, (layers, queries, keys) in kinds.items()
        for layer, weights in enumerate(layers)
    ]
    groups = explore(records).groups
    assert [(group.kind, group.layers[0].weights.shape) for group in groups] == [
        ("encoder", (2, 3, 3)), ("decoder", (4, 4, 4)), ("cross", (4, 4, 3))
    ]  # fmt: skip
    assert groups[1].mask is not None
    np.testing.assert_array_equal(groups[2].layers[1].weights, found.cross_attentions[1][0])


BAD = PATTERN.copy()
BAD[1, 2] = np.nan
LONG = softmax(1, MOST_TOKENS + 2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: explore([]), "the list of records is empty. Run the model inside `with record_attention"),
        (lambda: explore(), "give records, model=… with text=…, or weights=… with tokens"),
        (lambda: explore([record()], weights=PATTERN), "records and weights were given: choose one"),
        (lambda: explore(text="A dog."), "a text needs a model to read it"),
        (lambda: explore(model=SimpleNamespace()), "give either text=… or example=…"),
        (lambda: explore([record()], mask=PATTERN > 0), "a mask goes with weights"),
        (lambda: explore([record(queries=None)]), r"cross record of layer 0 has no tokens: .*dataclasses\.replace"),
        (lambda: explore([record(), record(layer=1, keys=KEYS[::-1])]), "layers 0 and 1 have different tokens"),
        (lambda: explore([record(weights=np.full((2, 1, 3, 5), 0.2))]), "holds 2 sentences: choose one, .*sentence=0"),
        (lambda: explore([record()], sentence=3), r"layer 0 has no sentence 3: choose from 0 … 0"),
        (lambda: explore(weights=PATTERN), "weights need names for their rows"),
        (lambda: explore(weights=None, query_tokens="abc"), 'attn_implementation="eager".*output_attentions=True'),
        (lambda: explore(weights=(None, None), query_tokens="abc"), "output_attentions=True"),
        (lambda: explore(weights=(), query_tokens="abc"), "the weights are empty"),
        (
            lambda: explore(weights=PATTERN.T, query_tokens=QUERIES, key_tokens=KEYS),
            "5 queries and 3 keys, but there are 3 query tokens and 5 key tokens: .*queries down, keys across",
        ),
        (lambda: explore(weights=PATTERN, query_tokens=QUERIES), "3 query tokens and 3 key tokens"),
        (lambda: explore(weights=np.zeros((1, 0, 0)), query_tokens=""), r"shape \(1, 0, 0\), but \(heads, queries"),
        (
            lambda: explore(weights=BAD, query_tokens=QUERIES, key_tokens=KEYS),
            r"layer 0: the weight of head 0, query 1 \('Hund'\), key 2 is nan: a mask that forbids a whole row",
        ),
        (
            lambda: explore(weights=PATTERN * 0.5, query_tokens=QUERIES, key_tokens=KEYS),
            r"the weights of head 0, query 0 \('Ein'\) sum to 0\.5, not to one: .*before dropout \(model\.eval\(\)",
        ),
        (
            lambda: explore(weights=np.zeros((3, 5)), query_tokens=QUERIES, key_tokens=KEYS),
            "sum to 0, not to one",
        ),
        (
            lambda: explore(weights=[[2.0, -1.0], [0.5, 0.5]], query_tokens="ab"),
            r"the weight of head 0, query 0 \('a'\), key 0 is 2: give probabilities",
        ),
        (
            lambda: explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS, mask=PATTERN < 0.3),
            r"query 0 \('Ein'\), key 4 is 0\.3333, but the mask forbids it: True is allowed",
        ),
        (
            lambda: explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS, mask=PATTERN.T > 0),
            r"the mask has shape \(5, 3\), but the weights of one head have \(3, 5\)",
        ),
        (
            lambda: explore(weights=LONG, query_tokens=["x"] * len(LONG[0]), key_tokens="abc"),
            r"130 queries .* more than can be drawn, which is 128: choose a part with queries=slice\(0, 128\)",
        ),
        (
            lambda: explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS, keys=slice(7, 9)),
            "the slice of keys leaves no token",
        ),
        (
            lambda: explore([record(query=torch.zeros(1, 1, 4, 2), key=torch.zeros(1, 1, 5, 2))]),
            r"query has shape \(1, 4, 2\), but \(1, 3, d_k\) belongs to the weights",
        ),
        (lambda: explore([record()], layers=[4]), r"there is no layer 4: choose from \[0\]"),
        (lambda: explore([record()]).ask(text="x"), r"no model to ask: make it with explore\(model=…, text=…\)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_remedy(call, message):
    with pytest.raises(ExplorerError, match=message):
        call()


def test_what_is_too_long_can_be_sliced_as_the_message_says():
    explorer = explore(weights=LONG, query_tokens=["x"] * len(LONG[0]), key_tokens="abc", queries=slice(0, 128))
    assert len(explorer.state["groups"][0]["queries"]) == 128


def test_half_precision_and_a_row_that_sees_nothing_are_accepted():
    explore(weights=torch.randn(1, 60, 60).softmax(-1).to(torch.bfloat16), query_tokens=["x"] * 60)
    blind = np.array([[0.0, 0.0], [0.5, 0.5]])
    explore(weights=blind, query_tokens="ab", mask=blind > 0)


def test_a_model_needs_text_that_it_can_read(translator):
    with pytest.raises(ExplorerError, match="there is no text: type a sentence"):
        explore(model=translator, text="  ")
    with pytest.raises(ExplorerError, match="beam=0 must be at least 1"):
        explore(model=translator, text="A dog.", beam=0)
    with pytest.raises(ValueError, match="the model takes 255: divide it"):
        explore(model=translator, text="dog " * 300)
    with pytest.raises(ExplorerError, match=r"more than can be drawn, which is 128: choose a part with queries="):
        explore(model=translator, text="dog " * 130)


def test_a_request_changes_sentence_decoding_and_heads(translator):
    explorer = explore(model=translator, text="My dog was hungry.")
    first = explorer.state["translation"]
    off = {("decoder", 0): [0, 1, 2, 3], ("cross", 1): [2]}
    explorer.ask(beam=1, silenced=[(*place, head) for place, heads in off.items() for head in heads])
    with translator.silence(off):
        expected = translator("My dog was hungry.", beam=1, split=False)
        records = translator.record(translator.tokenizer.encode("My dog was hungry."), expected.ids)
    state = explorer.state
    assert state["translation"]["text"] == expected.text != first["text"]
    assert state["translation"]["log_probability"] == pytest.approx(expected.log_probability)
    assert state["intact"]
    assert state["before"]["text"] == first["text"], "heads off are compared with heads on"
    np.testing.assert_allclose(explorer.groups[2].layers[1].weights, records.find("cross", 1).weights[0], atol=1e-6)
    explorer.ask(beam=1, silenced=[("cross", 1, 2)])
    assert explorer.state["before"]["text"] == first["text"], "not with the heads that were off a moment ago"
    shown = explorer.state["translation"]["text"]
    explorer.ask(silenced=[], text="My cat was hungry.")
    assert not explorer.state["intact"]
    assert explorer.state["before"]["text"] == shown, "another sentence is compared with what was shown before"


def test_the_difference_marks_every_word():
    assert difference("ein Hund läuft", "ein Hund rennt schnell") == ["=ein", "=Hund", "-läuft", "+rennt", "+schnell"]
    assert difference("a b", "a b") == ["=a", "=b"]
    assert difference("", "a") == ["+a"]


def test_importance_is_the_change_of_the_log_probability(translator):
    text = "My dog crossed the bridge because it was hungry."
    source, translation = translator.tokenizer.encode(text), translator(text, split=False)
    assert translator.log_probability(source, translation.ids) == pytest.approx(translation.log_probability, abs=1e-4)
    groups = explore(model=translator, text=text).groups
    changes = importance(translator, source, translation.ids, heads_of(groups))
    assert len(changes) == 2 * 3 * 4
    for place in (("decoder", 0, 2), ("cross", 1, 0)):
        with translator.silence({place[:2]: [place[2]]}):
            alone = translator.log_probability(source, translation.ids)
        assert changes[place] == pytest.approx(alone - translation.log_probability, abs=1e-4)
    assert min(changes.values()) < -0.01, "some head helps"


def test_gold_cells_stand_in_the_rows_that_write_them():
    # The words "ab c" and "x yz"; pieces a, b, c and x, y, z. Word 0 goes with word 1.
    assert alignment_cells([[0, 1]], source=[0, 0, 1], target=[0, 1, 1]) == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_the_mass_on_an_antecedent():
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])
    assert mass(weights, [0, 2], [1, 2]) == pytest.approx((0.9 + 0.5) / 2)


def test_gold_scores_are_those_of_the_evaluation(translator):
    example = next(iter(generate("test_pronoun", 1, 1)))
    explorer = explore(model=translator, example=example)
    gold = explorer.state["gold"]
    errors = alignment_errors(translator, [example])
    assert gold["cross"]["errors"]["1/mean"] == errors[1, None]
    assert gold["cross"]["errors"]["0/3"] == errors[0, 3]
    encoder, _, cross = explorer.groups
    (pronoun,) = example.pronouns
    it, noun = (encoder.queries.index(f"▁{example.source_words[pronoun[key]]}") for key in ("position", "antecedent"))
    assert gold["encoder"]["links"] == [(it, noun)]
    assert gold["encoder"]["masses"]["1/2"] == pytest.approx(encoder.layers[1].weights[2, it, noun])
    assert gold["encoder"]["masses"]["all/max"] == pytest.approx(
        max(layer.weights[:, it, noun].max() for layer in encoder.layers)
    )
    row, column = gold["cross"]["links"][0]
    assert cross.queries[row] == "<s>"
    assert cross.keys[column] == f"▁{example.source_words[0]}", "the first word is written after the start token"
    explorer.ask(text="My dog was hungry.")
    assert explorer.state["gold"] == {}, "nothing is known of a sentence that somebody typed"
    cut = explore(model=translator, example=example, queries=slice(2, 6))
    assert cut.state["gold"] == {}, "rows have moved"


def embedded_state(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="state">(.*?)</script>', text, re.DOTALL).group(1))


def test_the_saved_page_is_one_file_that_asks_for_nothing(tmp_path):
    path = explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS).save_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy + "".join(re.findall(r'(?:src|href)="([^"]*)"', text))
    assert not re.search(
        r"<(?:link|img|iframe|script src)|@import|\burl\(|\beval\(|new Function|innerHTML|fetch\(|import\(", text
    )
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"], "a name, not a link"
    assert embedded_state(text)["groups"][0]["queries"] == list(QUERIES)
    assert not list(tmp_path.glob("*.part"))


def test_tokens_cannot_break_out_of_the_saved_page():
    tokens = ("</script><script>alert(1)</script>", "<!--", "\u2028\u2029", "&lt;", "😀", "{mark}")
    state = explore(weights=softmax(1, 6, 6), query_tokens=tokens, title="</title><script>").state
    text = page_of(state)
    assert text.count("</script>") == 2
    assert "\u2028" not in text
    assert "<!--" not in text.split('id="state">')[1].split("</script>")[0]
    assert tuple(embedded_state(text)["groups"][0]["keys"]) == tokens


def test_the_same_attention_gives_the_same_page_and_figure():
    one, two = (explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS) for _ in range(2))
    assert page_of(one.state) == page_of(two.state)
    assert one.figure()._repr_png_() == two.figure()._repr_png_()


def test_where_a_page_may_be_written(tmp_path):
    explorer = explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS)
    page = explorer.save_html(tmp_path / "page.html")
    assert explorer.save_html(page) == page, "a page of ours is replaced"
    mine = tmp_path / "mine.html"
    mine.write_text("my thesis")
    with pytest.raises(ExplorerError, match=r"mine\.html exists and is no page of the explorer: choose another name"):
        explorer.save_html(mine)
    assert mine.read_text() == "my thesis"
    with pytest.raises(ExplorerError, match=r"there is no folder .*nowhere: make it first"):
        explorer.save_html(tmp_path / "nowhere" / "page.html")
    with pytest.raises(ExplorerError, match="is a folder: give the name of a file"):
        explorer.save_html(tmp_path)


def test_the_largest_page_we_promise_is_below_three_megabytes(tmp_path):
    """60 tokens, 6 layers of 8 heads, three kinds, queries and keys of the last layer, and every head tried off."""
    tokens = [f"▁word{number}" for number in range(60)]
    records = []
    for layer in range(6):
        for kind in ("encoder", "decoder", "cross"):
            vectors = {name: torch.randn(1, 8, 60, 64) for name in ("query", "key")}
            weights = softmax(1, 8, 60, 60, causal=kind == "decoder")
            records.append(record(kind, layer, weights, tuple(tokens), tuple(tokens), **vectors))
    groups = from_records(records)
    state = state_of(groups)
    assert [layer["number"] for layer in state["groups"][0]["layers"] if "query" in layer] == [5]
    words = difference(
        " ".join(f"alt{number}" for number in range(20)), " ".join(f"Wort{number}" for number in range(60))
    )
    heads = heads_of(groups)
    state["silencing"] = [
        {"head": one, "score": -1.23456789, "log_probability": -1.2, "difference": words} for one in heads
    ]
    state["importance"] = [{"head": one, "change": -0.123456789} for one in heads]
    assert len(page_of(state).encode("utf-8")) < 3_000_000


def test_a_static_figure_stands_in_where_no_widgets_run(monkeypatch):
    explorer = explore(weights=PATTERN, query_tokens=QUERIES, key_tokens=KEYS)
    bundle = explorer._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == "<Explorer of attention 1 × 1 heads>", "no address of the machine"
    monkeypatch.setattr("tinytransformer.inspection.explorer.front.find_spec", lambda name: None)
    assert set(explorer._repr_mimebundle_()) == {"image/png", "text/plain"}


def test_the_static_figure_shows_the_last_layer():
    weights = softmax(2, 3, 4, 4)
    axes = explore(weights=weights, query_tokens="abcd").figure().axes
    assert len(axes) == 3
    np.testing.assert_allclose(np.asarray(axes[2].collections[0].get_array()).reshape(4, 4), weights[1, 2], rtol=1e-6)
    wide = softmax(1, 20, 20, 20)
    mean = explore(weights=wide, query_tokens=["x"] * 20).figure().axes[0]
    np.testing.assert_allclose(np.asarray(mean.collections[0].get_array()).reshape(20, 20), wide[0].mean(0), rtol=1e-5)


def test_the_widget_answers_and_tells_errors(translator):
    explorer = explore(model=translator, text="My dog was hungry.")
    widget = explorer.widget
    assert widget.state["translation"]["text"] == translator("My dog was hungry.", split=False).text
    widget.request = {"text": "My cat was hungry.", "beam": 4, "silenced": [["cross", 0, 1]], "number": 1}
    with translator.silence({("cross", 0): [1]}):
        assert widget.state["translation"]["text"] == translator("My cat was hungry.", split=False).text
    assert widget.reply == {"number": 1, "error": ""}
    shown = widget.state
    widget.request = {"text": "", "beam": 4, "number": 2}
    assert widget.reply == {"number": 2, "error": "there is no text: type a sentence"}
    assert widget.state == shown
    widget.request = {"text": "A dog.", "beam": 4, "silenced": [["cross", 9, 1]], "number": 3}
    assert "('cross', 9) is no attention of this model" in widget.reply["error"]
    explorer.ask(silenced=[])
    assert widget.state["request"]["silenced"] == ()


def test_colours_are_those_of_the_figures():
    assert plots.PALETTE.as_hex() == HEAD_COLOURS


def test_the_command_writes_a_page(tmp_path, capsys):
    page = tmp_path / "out.html"
    assert main(["explore", "My dog was hungry.", "--model", "microworld-en-de", "--beam", "1", "--layers", "0",
                 "--html", str(page)]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.startswith("Mein Hund war hungrig.\n")
    assert "out.html: 0." in printed
    state = embedded_state(page.read_text(encoding="utf-8"))
    assert state["request"]["beam"] == 1
    assert [("query" in layer) for layer in state["groups"][0]["layers"]] == [True, False]
    assert len(state["silencing"]) == len(state["importance"]) == 24
    assert main(["explore", "--microworld", "test_pronoun", "--model", "microworld-en-de", "--no-silencing",
                 "--html", str(page)]) == 0  # fmt: skip
    state = embedded_state(page.read_text(encoding="utf-8"))
    assert set(state["gold"]) == {"encoder", "cross"}
    assert "silencing" not in state


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "x.html"], "say what to translate: a sentence, or --microworld with a split"),
        (["A dog.", "--html", "nowhere/x.html"], "there is no folder nowhere"),
        (["A dog.", "--model", "nosuch", "--html", "x.html"], "there is no model 'nosuch'"),
        (["A dog.", "--layers", "9", "--html", "x.html"], "there is no layer 9"),
        (["A dog."], "the following arguments are required: --html"),
    ],
)
def test_the_command_refuses_with_a_remedy(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["explore", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
