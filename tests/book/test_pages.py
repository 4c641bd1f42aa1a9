"""The book as a reader meets it: headless Chromium, network blocked, every page."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.browser

GRAVE = ("serious", "critical")
# One page of each kind: contrast takes too long to be measured on all of them, and they share their style sheets.
KINDS = ("index.html", "lessons/00_start_here.html", "lessons/solutions/03_masks.html", "mistakes/assignments.html",
         "reference/training.html", "results.html")  # fmt: skip
# Preloading would fetch style sheets a second time, by addresses that are wrong.
AXE = {"preload": False, "resultTypes": ["violations"]}
ALL_BUT_CONTRAST = {**AXE, "rules": {"color-contrast": {"enabled": False}}}
ONLY_CONTRAST = {**AXE, "runOnly": ["color-contrast"]}
PRINTED_PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")


def pages_of(site):
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [name for name in found if not name.startswith("explorer/")]


def grave(page, options) -> list[str]:
    """What axe calls serious or critical, with the first element that it names."""
    found = Axe().run(page, options=options).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:150]}" for one in found if one["impact"] in GRAVE]


def open_page(reader, served, name):
    reader.goto(f"{served}/{name}", wait_until="load")
    if reader.locator("script[src*=mathjax]").count():
        reader.evaluate("() => MathJax.startup.promise.then(() => true)")


def test_every_page_loads_fits_a_phone_and_is_accessible(reader, served, site):
    problems = []
    for name in pages_of(site):
        open_page(reader, served, name)
        problems += [f"{name}: {problem}" for problem in grave(reader, ALL_BUT_CONTRAST)]
        reader.set_viewport_size({"width": 360, "height": 740})
        wide = reader.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        problems += [f"{name}: is {wide} pixels wider than a phone"] if wide > 0 else []
        reader.set_viewport_size({"width": 1280, "height": 900})
    assert problems == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast_is_enough(mode, reader, served):
    reader.emulate_media(color_scheme=mode)
    problems = []
    for name in KINDS:
        open_page(reader, served, name)
        assert reader.locator("html").get_attribute("data-theme") == mode, "the book follows the reader's system"
        problems += [f"{name}: {problem}" for problem in grave(reader, ONLY_CONTRAST)]
    assert problems == []


def test_a_button_makes_it_dark_for_good(reader, served):
    open_page(reader, served, "index.html")
    reader.get_by_role("button", name="Color mode").click()
    reader.get_by_role("button", name="Dark").click()
    open_page(reader, served, "syllabus.html")
    assert reader.locator("html").get_attribute("data-theme") == "dark"


def test_search_finds_label_smoothing(reader, served):
    open_page(reader, served, "search.html?q=label+smoothing")
    reader.wait_for_selector("#search-results li a")
    reader.wait_for_function("() => /finished|found/.test(document.querySelector('#search-results').textContent)")
    found = reader.locator("#search-results li a").evaluate_all("links => links.map(one => one.getAttribute('href'))")
    assert any("07_training" in link for link in found), found


def test_search_works_from_a_copy_on_disk(reader, site):
    reader.goto((site / "search.html").as_uri() + "?q=label+smoothing")
    reader.wait_for_selector("#search-results li a")


def test_formulas_are_drawn(reader, served):
    open_page(reader, served, "lessons/02_attention.html")
    drawn = reader.locator("mjx-container svg")
    assert drawn.count() >= 1
    assert drawn.first.bounding_box()["width"] > 20
    assert reader.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert "$$" not in reader.locator("article").inner_text()


@pytest.mark.parametrize("name", ["lessons/00_start_here.html", "explorer.html"])
def test_the_explorer_answers(name, reader, served):
    open_page(reader, served, name)
    reader.locator("iframe.explorer").first.scroll_into_view_if_needed()
    frame = reader.frame_locator("iframe.explorer").first
    numbers = frame.locator(".tt-token[data-side=key] .tt-number")
    frame.locator(".tt-chip[data-head='2']").dblclick()
    frame.locator(".tt-token[data-side=query][data-index='3']").hover()
    weights = [float(text) for text in numbers.all_text_contents()]
    assert sum(weights) == pytest.approx(1, abs=0.01), "a row of one head sums to one"
    before = frame.locator(".tt-numbers").inner_text()
    frame.locator(".tt-off[data-off='1']").click()
    assert frame.locator(".tt-numbers").inner_text() != before, "the saved state with the head switched off"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_explorers_own_pages_are_accessible(mode, reader, served, site):
    reader.emulate_media(color_scheme=mode)
    names = sorted(path.name for path in (site / "explorer").glob("*.html"))[:2]  # they share one style sheet
    assert names
    for name in names:
        reader.goto(f"{served}/explorer/{name}", wait_until="load")
        reader.wait_for_selector(".tt-token")
        assert grave(reader, AXE) == [], name


def test_the_explorer_follows_the_mode(browser, served):
    reader = browser.new_page(color_scheme="null")  # an emulated scheme would reach into the frame
    open_page(reader, served, "explorer.html")
    frame = reader.frame_locator("iframe.explorer")
    paper = "one => getComputedStyle(one).backgroundColor"
    found = []
    for mode in ("light", "dark"):
        reader.evaluate("mode => { document.documentElement.dataset.theme = mode; }", mode)
        reader.wait_for_timeout(300)
        found.append(frame.locator(".tt-explorer").evaluate(paper))
    reader.close()
    assert found[0] != found[1]


def test_a_keyboard_is_enough(reader, served):
    open_page(reader, served, "lessons/02_attention.html")
    reader.keyboard.press("Tab")
    assert "Skip to main content" in reader.evaluate("() => document.activeElement.textContent")
    reader.keyboard.press("Enter")
    assert reader.url.endswith("#main-content")
    reader.keyboard.press("Control+k")
    reader.keyboard.type("label smoothing")
    reader.keyboard.press("Enter")
    reader.wait_for_url("**/search.html?q=label+smoothing*")
    open_page(reader, served, "lessons/02_attention.html")
    reader.keyboard.press("ArrowRight")
    reader.wait_for_url("**/lessons/03_masks.html")
    reader.set_viewport_size({"width": 360, "height": 740})
    open_page(reader, served, "results.html")
    assert reader.locator(".scrolls[tabindex='0'], .pst-scrollable-table-container[tabindex='0']").count() >= 5


def test_print_has_no_menus_and_the_syllabus_has_two_pages(reader, served):
    open_page(reader, served, "lessons/00_start_here.html")
    reader.emulate_media(media="print")
    for menu in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", "iframe.explorer"):
        assert reader.locator(menu).first.is_hidden(), menu
    assert reader.locator("article img").first.is_visible()
    open_page(reader, served, "syllabus.html")
    assert len(PRINTED_PAGES.findall(reader.pdf(format="A4"))) == 2
