"""The attention explorer as a reader meets it: in JupyterLab, in Notebook 7, and as a page on disk, offline."""

import json
import math
import re
import urllib.request
import xml.etree.ElementTree as ElementTree

import nbformat
import numpy as np
import pytest
from support_browser import RUN_ALL, wait_until_idle

from tinytransformer import Translator, explore
from tinytransformer.inspection.explorer.aggregates import rollout
from tinytransformer.inspection.explorer.data import KINDS
from tinytransformer.inspection.explorer.interventions import Head, heads_of, importance
from tinytransformer.text.microworld import generate
from tinytransformer.translation.translator import Translation

pytestmark = pytest.mark.browser

SENTENCE = "My dog crossed the bridge because it was hungry."
CELLS = f"""\
from tinytransformer import Translator, explore
translator = Translator.load("microworld-en-de", "cpu")
explorer = explore(model=translator, text={SENTENCE!r})
explorer
"""
ACTIVE_CELL = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
TOKENS = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "</script><script>window.hacked = 3</script>",
    "<!-- & 'quotes' \"too\" -->",
    "\u2028window.hacked = 4",
    "👩‍👩‍👧‍👦",
    "שלום",
    "مرحبا",
    "Donaudampfschifffahrtsgesellschaftskapitän" * 20,
    "line\nbreak",
    " ",
]


@pytest.fixture(scope="module")
def translator():
    return Translator.load("microworld-en-de", "cpu")


@pytest.fixture(scope="module")
def saved(translator, tmp_path_factory):
    """A page about a microworld sentence: the example, its explorer and the file."""
    example = next(iter(generate("test_pronoun", 1, 1)))
    explorer = explore(model=translator, example=example, layers=[1])
    return example, explorer, explorer.save_html(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def offline(page):
    """A page for which every request but that for the file itself is an error."""
    asked = []
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort())
    page.on("request", lambda request: asked.append(request.url))
    yield page
    outside = [address for address in asked if not address.startswith(("file:", "data:image/png", "blob:"))]
    assert not outside


def four(number) -> str:
    return f"{number:.4f}"


def status(page) -> str:
    return page.locator(".tt-status").inner_text()


def choose(page, view=None, **values):
    """Switch the view, and set the selects of the tool bar by what they show."""
    if view:
        page.click(f"button[data-view={view}]")
    for name, label in values.items():
        page.select_option(f".tt-{name}", label=str(label))


def numbers_beside(page, side: str) -> list[str]:
    return page.locator(f".tt-token[data-side={side}] .tt-number").all_text_contents()


def token(page, side: str, index: int):
    return page.locator(f".tt-token[data-side={side}][data-index='{index}']")


def cell(page, query: int, key: int):
    return page.locator(f".tt-cell[data-query='{query}'][data-key='{key}']")


def weights_of(groups, kind: str, layer: int) -> np.ndarray:
    (found,) = [one.weights for group in groups if group.kind == kind for one in group.layers if one.number == layer]
    return found


def open_notebook(page, address: str, secret: str, path: str) -> list[str]:
    """Put a notebook on the server, open it, run it; returns a list that fills with requests to the outside."""
    outside = []
    page.on("request", lambda one: None if one.url.startswith((address, "data:", "blob:")) else outside.append(one.url))
    page.on(
        "websocket", lambda one: None if one.url.startswith(address.replace("http", "ws")) else outside.append(one.url)
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELLS), nbformat.v4.new_code_cell("1 + 1")])
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    body = json.dumps({"type": "notebook", "content": notebook}).encode()
    headers = {"Authorization": f"token {secret}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/api/contents/explorer.ipynb", body, headers, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
    page.goto(f"{address}/{path}/explorer.ipynb?token={secret}")
    wait_until_idle(page)
    page.evaluate(RUN_ALL)
    page.wait_for_selector(".tt-explorer .tt-token", timeout=60_000)
    return outside


def wait_for_translation(page, text: str) -> None:
    page.wait_for_function(
        "text => document.querySelector('.tt-output').ariaBusy === 'false' && text ==="
        " [...document.querySelectorAll('.tt-translation > :not(del)')].map(one => one.textContent).join(' ')",
        arg=text,
        timeout=20_000,
    )


def test_jupyterlab(lab, page, translator):
    # A workspace of its own, or the tests of lessons, on the same server, would find this notebook open.
    outside = open_notebook(page, *lab, "lab/workspaces/explorer/tree")
    plain = translator(SENTENCE, split=False)
    groups = explore(model=translator, text=SENTENCE).groups
    wait_for_translation(page, plain.text)
    look_around(page, groups)
    intervene(page, translator, plain)
    follow_the_theme(page)
    bundle = page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[0].model.outputs.get(0).data")
    assert bundle["image/png"], "what is shown where no widgets run"
    assert outside == []


def look_around(page, groups):
    """Hover, hold, views and arrow keys, against the numbers in Python."""
    cross = weights_of(groups, "cross", 1)
    page.locator(".tt-chip[data-head='2']").dblclick()
    token(page, "query", 3).hover()
    assert numbers_beside(page, "key") == [four(weight) for weight in cross[2, 3]]
    token(page, "query", 3).click()
    token(page, "query", 5).hover()
    assert numbers_beside(page, "key") == [four(weight) for weight in cross[2, 3]], "it is held"
    page.keyboard.press("Escape")
    choose(page, "matrix")
    cell(page, 4, 1).hover()
    assert status(page).startswith("layer 1, head 2: ")
    assert status(page).endswith(four(cross[2, 4, 1]))
    page.locator(".tt-matrix").focus()
    before = page.evaluate(ACTIVE_CELL)
    for key in ("ArrowUp", "ArrowDown", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
        assert page.evaluate(ACTIVE_CELL) == before, "the notebook leaves the keys to the explorer"
    assert status(page).endswith(four(cross[2, 2, 1])), "the cursor began at the token that was held"
    choose(page, "model")
    assert page.locator(".tt-thumb").count() == 8
    page.locator(".tt-thumb[data-row='0'][data-head='3']").click()
    cell(page, 0, 0).hover()
    assert status(page).endswith(four(weights_of(groups, "cross", 0)[3, 0, 0]))
    choose(page, "neuron", query=f"2: {groups[-1].queries[2]}", key=f"4: {groups[-1].keys[4]}")
    (layer,) = [one for group in groups if group.kind == "cross" for one in group.layers if one.number == 0]
    score = float(layer.query[3, 2].astype(float) @ layer.key[3, 4].astype(float))
    assert page.locator(".tt-dot").inner_html() == four(score).replace("-", "−")
    assert page.locator(".tt-weight").inner_html() == four(layer.weights[3, 2, 4])


def intervene(page, translator, plain):
    """Switch heads off, decode greedily, type a sentence, measure, and get an error for an empty sentence."""
    (kind, layer, head), silenced = changing_head(translator, SENTENCE)
    choose(page, "matrix", kind=KINDS[kind], layer=layer)
    page.locator(f".tt-off[data-off='{head}']").click()
    wait_for_translation(page, silenced.text)
    numbers = page.locator(".tt-numbers").inner_text()
    assert f"log p {four(silenced.log_probability)}".replace("-", "−") in numbers
    assert f"all heads on: log p {four(plain.log_probability)}".replace("-", "−") in numbers
    gone, new = (page.locator(f".tt-translation {mark}").all_text_contents() for mark in ("del", "ins"))
    assert gone + new, "what has changed is marked"
    assert len(plain.text.split()) - len(gone) == len(silenced.text.split()) - len(new)
    page.get_by_text("all heads on").last.click()
    wait_for_translation(page, plain.text)

    other = "The old bridge was too dangerous."
    page.fill(".tt-text", other)
    wait_for_translation(page, translator(other, split=False).text)
    choose(page, beam="greedy")
    greedy = translator(other, beam=1, split=False)
    page.wait_for_function("t => document.querySelector('.tt-numbers').textContent.includes(t)",
                           arg=f"score {four(greedy.score)}".replace("-", "−"))  # fmt: skip
    page.check(".tt-measure")
    page.wait_for_selector(".tt-bar-head")
    source = translator.tokenizer.encode(other)
    changes = importance(translator, source, greedy.ids, heads_of(explore(model=translator, text=other).groups))
    shown = [one.get_attribute("aria-label") for one in page.locator(".tt-bar-head").all()]
    expected = [
        f"{kind} layer {layer} head {head}: log p {change:+.4f}" for (kind, layer, head), change in changes.items()
    ]
    assert shown == [text.replace("-", "−") for text in expected]

    page.fill(".tt-text", "  ")
    page.wait_for_selector(".tt-error:visible")
    assert page.locator(".tt-error").inner_text() == "there is no text: type a sentence"
    page.fill(".tt-text", SENTENCE)
    page.keyboard.press("Enter")
    wait_for_translation(page, translator(SENTENCE, beam=1, split=False).text)
    assert page.locator(".tt-error").is_hidden()


def changing_head(translator, text: str) -> tuple[Head, Translation]:
    """A head without which the translation is another one, and that translation."""
    plain = translator(text, split=False)
    for head in heads_of(explore(model=translator, text=text).groups):
        with translator.silence({head[:2]: [head[2]]}):
            found = translator(text, split=False)
        if found.text != plain.text:
            return head, found
    pytest.fail(f"no head of this model matters for {text!r}: choose another sentence")


def follow_the_theme(page):
    paper = "() => getComputedStyle(document.querySelector('.tt-explorer')).backgroundColor"
    light = page.evaluate(paper)
    page.evaluate("() => { window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'}); }")
    page.wait_for_function(f"light => ({paper})() !== light", arg=light, timeout=20_000)


def test_notebook_7(notebook7, page, translator):
    outside = open_notebook(page, *notebook7, "notebooks")
    wait_for_translation(page, translator(SENTENCE, split=False).text)
    choose(page, "matrix")
    cross = weights_of(explore(model=translator, text=SENTENCE).groups, "cross", 1)
    cell(page, 2, 3).hover()
    assert status(page).endswith(four(cross[0, 2, 3]))
    page.locator(".tt-off[data-off='2']").click()
    with translator.silence({("cross", 1): [2]}):
        wait_for_translation(page, translator(SENTENCE, split=False).text)
    assert outside == []


def test_saved_page_heads(saved, offline):
    _, explorer, path = saved
    offline.goto(path.as_uri())
    cross = weights_of(explorer.groups, "cross", 1)
    token(offline, "query", 1).hover()
    assert numbers_beside(offline, "key") == [four(weight) for weight in cross[:, 1].max(0)], "the largest of all heads"
    token(offline, "key", 4).hover()
    assert numbers_beside(offline, "query") == [four(weight) for weight in cross[:, :, 4].max(0)]
    assert not any(numbers_beside(offline, "key"))
    offline.locator(".tt-chip[data-head='1']").click()
    token(offline, "query", 1).click()
    offline.mouse.move(0, 0)
    assert offline.locator(".tt-picture.tt-focused").count() == 1, "it stays when the pointer leaves"
    assert numbers_beside(offline, "key") == [four(weight) for weight in cross[[0, 2, 3], 1].max(0)], (
        "held, and 1 hidden"
    )
    offline.keyboard.press("ArrowDown")
    assert offline.evaluate("() => document.activeElement.dataset.index") == "2"
    offline.keyboard.press("Escape")
    assert offline.locator(".tt-picture.tt-focused").count() == 0
    offline.locator(".tt-chip[data-head='1']").dblclick()
    pressed = [one.get_attribute("aria-pressed") for one in offline.locator(".tt-chip").all()]
    assert pressed == ["false", "true", "false", "false"]


def test_saved_page_matrix_and_aggregates(saved, offline):
    _, explorer, path = saved
    offline.goto(path.as_uri())
    decoder = weights_of(explorer.groups, "decoder", 0)
    choose(offline, "matrix", kind="decoder self-attention", layer=0)
    cell(offline, 3, 1).hover()
    words = explorer.groups[1].queries
    expected = f"layer 0, head 0: {words[3]}, writing {words[4]}, → {words[1]} {four(decoder[0, 3, 1])}"
    assert status(offline) == expected
    cell(offline, 1, 3).hover()
    assert status(offline).endswith("is masked")
    boxes = offline.locator(".tt-masked-box").get_attribute("d").count("M")
    rows = decoder.shape[1]
    assert boxes == rows * (rows - 1) / 2
    encoder = [weights_of(explorer.groups, "encoder", layer) for layer in (0, 1)]
    wanted = {
        ("1", "mean of heads"): encoder[1].mean(0),
        ("1", "maximum of heads"): encoder[1].max(0),
        ("all", "mean of heads"): np.stack(encoder).mean((0, 1)),
        ("all", "maximum of heads"): np.stack(encoder).max((0, 1)),
        ("all", "rollout"): rollout([one.mean(0) for one in encoder]),
    }
    for (layer, show), expected in wanted.items():
        choose(offline, kind="encoder self-attention", layer=layer, show=show)
        for query, key in ((0, 0), (8, 6), (3, 9)):
            cell(offline, query, key).hover()
            assert status(offline).endswith(four(expected[query, key])), (layer, show)
    assert offline.locator(".tt-show option[value=heads]").is_disabled()


def test_saved_page_model_and_neuron(saved, offline):
    _, explorer, path = saved
    offline.goto(path.as_uri())
    choose(offline, "model", kind="encoder self-attention")
    offline.locator(".tt-thumb[data-row='0'][data-head='0']").focus()
    offline.keyboard.press("ArrowDown")
    offline.keyboard.press("ArrowRight")
    offline.keyboard.press("Enter")
    assert offline.locator(".tt-matrix").count() == 1
    cell(offline, 8, 6).click()
    (layer,) = [one for group in explorer.groups if group.kind == "encoder" for one in group.layers if one.number == 1]
    query, vectors = layer.query[1, 8].astype(float), layer.key[1].astype(float)
    dot = query @ vectors[6]
    assert offline.locator(".tt-dot").inner_html() == four(dot).replace("-", "−")
    assert offline.locator(".tt-score").inner_html() == four(dot / math.sqrt(32)).replace("-", "−")
    scores = vectors @ query / math.sqrt(32)
    softmax = np.exp(scores) / np.exp(scores).sum()
    rows = offline.locator(".tt-key-row").all()
    assert [row.locator(".tt-number").nth(1).inner_html() for row in rows] == [four(one) for one in softmax]
    offline.locator(".tt-hit[data-feature='5']").first.hover()
    numbers = [query[5], vectors[6][5], query[5] * vectors[6][5]]
    assert status(offline) == "feature 5: {} × {} = {}".format(*(four(one).replace("-", "−") for one in numbers))
    choose(offline, layer=0)
    assert "No queries and keys were kept for layer 0. They are there for layer 1." in offline.inner_text(".tt-stage")


def test_saved_page_silencing_importance_and_gold(saved, offline, translator):
    example, explorer, path = saved
    offline.goto(path.as_uri())
    (kind, layer, head), silenced = changing_head(translator, example.source)
    choose(offline, kind=KINDS[kind], layer=layer)
    offline.locator(f".tt-off[data-off='{head}']").click()
    wait_for_translation(offline, silenced.text)
    assert f"log p {four(silenced.log_probability)}".replace("-", "−") in offline.inner_text(".tt-numbers")
    offline.locator(f".tt-off[data-off='{(head + 1) % 4}']").click()
    off = f"Off: {kind} layer {layer} head {(head + 1) % 4} all heads on"
    assert off in offline.inner_text(".tt-silenced"), "one head at a time"
    for control in (".tt-text", ".tt-beam", ".tt-measure"):
        assert offline.locator(control).is_disabled()
        assert "needs a running kernel" in offline.locator(control).get_attribute("title")
    source, target = translator.tokenizer.encode(example.source), translator(example.source, split=False).ids
    (change,) = importance(translator, source, target, [(kind, layer, head)]).values()
    bar = offline.locator(f".tt-bar-head[data-head='{kind} {layer} {head}']")
    expected = f"{kind} layer {layer} head {head}: log p {change:+.4f}"
    assert bar.get_attribute("aria-label") == expected.replace("-", "−")

    gold = explorer.state["gold"]
    choose(offline, "matrix", kind="cross-attention", layer=1)
    assert offline.inner_text(".tt-gold-score strong") == four(gold["cross"]["errors"]["1/0"])
    assert offline.locator(".tt-gold-cell").get_attribute("d").count("M") == len(gold["cross"]["links"])
    choose(offline, kind="encoder self-attention", show="mean of heads")
    assert offline.inner_text(".tt-gold-score strong") == four(gold["encoder"]["masses"]["1/mean"])
    offline.uncheck(".tt-gold-switch")
    assert offline.locator(".tt-gold-cell").get_attribute("d") == ""


def test_rectangular_weights_stand_at_their_tokens(offline, tmp_path):
    """Three queries, five keys, every weight another one: a transposed or shifted picture cannot pass."""
    weights = np.arange(1, 16, dtype=float).reshape(3, 5)
    weights /= weights.sum(-1, keepdims=True)
    explorer = explore(
        weights=weights, query_tokens=["Ein", "Hund", "läuft"], key_tokens=["A", "dog", "runs", ".", "</s>"]
    )
    offline.goto(explorer.save_html(tmp_path / "page.html").as_uri())
    choose(offline, "matrix")
    for query, name in enumerate(["Ein", "Hund", "läuft"]):
        for key, other in enumerate(["A", "dog", "runs", ".", "</s>"]):
            cell(offline, query, key).hover()
            assert status(offline) == f"layer 0, head 0: {name} → {other} {four(weights[query, key])}"
    box, row, column = (
        offline.locator(place).bounding_box()
        for place in (
            ".tt-cell[data-query='2'][data-key='1']",
            "text:has(title:text-is('läuft'))",
            "text:has(title:text-is('dog'))",
        )
    )
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert row["y"] < middle[1] < row["y"] + row["height"]
    assert column["x"] - 4 < middle[0] < column["x"] + 14, "a slanted label begins above its column"
    choose(offline, "heads")
    token(offline, "query", 1).hover()
    assert numbers_beside(offline, "key") == [four(one) for one in weights[1]]


def test_tokens_are_shown_as_text_and_run_nothing(offline, tmp_path):
    count = len(TOKENS)
    weights = np.full((2, 2, count, count), 1 / count)
    explorer = explore(weights=weights, query_tokens=TOKENS, title="<script>window.hacked = 9</script>")
    offline.goto(explorer.save_html(tmp_path / "page.html").as_uri())
    assert offline.locator(".tt-explorer h2").inner_text() == "<script>window.hacked = 9</script>"
    titles = "() => [...document.querySelectorAll('.tt-token-text title')].map(one => one.textContent)"
    assert offline.evaluate(titles) == TOKENS * 2
    shown = offline.locator(".tt-token[data-side=key] .tt-token-text").evaluate_all(
        "all => all.map(one => [one.firstChild.textContent, one.getComputedTextLength()])"
    )
    assert max(width for _, width in shown) <= 160, "long tokens are cut"
    assert [text for text, _ in shown][5:8] == TOKENS[5:8]
    assert shown[8][0].endswith("…")
    assert [text for text, _ in shown][9:] == ["line␊break", "␣"]
    for view in ("matrix", "model", "neuron"):
        choose(offline, view)
    choose(offline, "matrix")
    cell(offline, 0, 1).hover()
    assert f"{TOKENS[0][:24]}… → {TOKENS[1][:24]}… {four(1 / count)}" in status(offline)
    assert offline.locator(".tt-explorer :is(script, img, iframe)").count() == 0
    assert offline.evaluate("() => window.hacked ?? null") is None


@pytest.mark.parametrize("view", ["heads", "matrix", "model", "neuron"])
def test_pictures_can_be_saved(saved, offline, tmp_path, view):
    _, explorer, path = saved
    offline.goto(path.as_uri())
    choose(offline, view)
    with offline.expect_download() as waiting:
        offline.get_by_role("button", name="SVG").click()
    assert re.fullmatch(rf"{view}-cross-attention[\w-]*\.svg", waiting.value.suggested_filename)
    text = waiting.value.path().read_text(encoding="utf-8")
    picture = ElementTree.fromstring(text)
    assert "class=" not in text, "it needs no style sheet"
    assert "var(--" not in text
    if view != "model":
        labels = "".join(picture.itertext())
        assert all(one in labels for one in explorer.groups[-1].keys)
    with offline.expect_download() as waiting:
        offline.get_by_role("button", name="PNG").click()
    data = waiting.value.path().read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 2 * int(picture.get("width")), "twice as sharp as on the screen"


def test_everything_can_be_reached_and_has_a_name(saved, offline):
    offline.goto(saved[2].as_uri())
    for view in ("heads", "matrix", "model", "neuron"):
        choose(offline, view)
        unnamed = offline.evaluate("""() => [...document.querySelectorAll(
            '.tt-explorer :is(button, select, input, [tabindex], [role=button])')].filter(one => !(
                one.getAttribute('aria-label') || one.closest('label')?.textContent.trim() || one.textContent.trim()
            )).map(one => one.outerHTML)""")
        assert unnamed == []
    offline.locator("button[data-view=heads]").focus()
    offline.keyboard.press("Tab")
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert offline.evaluate(outline) == "solid", "the focus can be seen"
