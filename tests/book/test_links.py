"""The link check notices what would fail a reader, and the book has none of it."""

import re

import pytest
from bookmaking.linkcheck import problems_of

PAGE = '<html><head><link rel="stylesheet" href="a.css"></head><body><h1 id="top">A</h1>{}</body></html>'


def site_of(folder, body: str, css: str = "body { color: black }"):
    (folder / "one.html").write_text(PAGE.format(body), encoding="utf-8")
    (folder / "two.html").write_text(PAGE.format('<p id="there">Here</p>'), encoding="utf-8")
    (folder / "a.css").write_text(css, encoding="utf-8")
    return problems_of(folder)


@pytest.mark.parametrize(
    "body",
    [
        '<a href="two.html#there">a cell</a>',
        '<a href="#top">up</a>',
        '<a href="https://example.org">another site, if one clicks</a>',
        '<img src="data:image/png;base64,AAAA" alt="">',
        '<a href="two.html?q=1">a page</a>',
        '<link rel="next" href="https://example.org">',
    ],
)
def test_what_is_right_passes(body, tmp_path):
    assert site_of(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="three.html">gone</a>', "one.html: links to three.html, which does not exist"),
        ('<a href="two.html#gone">gone</a>', "one.html: links to two.html#gone, whose anchor does not exist"),
        ('<a href="#gone">gone</a>', "one.html: links to #gone, whose anchor does not exist"),
        ('<img src="gone.png" alt="">', "one.html: loads gone.png, which does not exist"),
        ('<iframe src="gone.html"></iframe>', "one.html: loads gone.html, which does not exist"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js from outside"),
        ('<img src="//cdn.example/x.png" alt="">', "loads //cdn.example/x.png from outside"),
        ('<link rel="stylesheet" href="https://fonts.example/css">', "loads https://fonts.example/css from outside"),
        ('<style>@import "https://fonts.example/a.css";</style>', "loads https://fonts.example/a.css from outside"),
        ('<p style="background: url(http://x.example/a.png)">a</p>', "loads http://x.example/a.png from outside"),
        ('<img srcset="https://x.example/a.png 2x" alt="">', "loads https://x.example/a.png from outside"),
    ],
)
def test_a_broken_link_and_an_outside_resource_are_noticed(body, problem, tmp_path):
    (found,) = site_of(tmp_path, body)
    assert problem in found


def test_style_sheets_are_read_too(tmp_path):
    (found,) = site_of(tmp_path, "", "@font-face { src: url('https://fonts.example/a.woff2') }")
    assert found == "a.css: loads https://fonts.example/a.woff2 from outside: ship it with the book"


def test_the_book_has_no_broken_link_and_loads_nothing(site):
    assert problems_of(site) == []


def test_a_planted_link_in_the_book_is_noticed(site):
    page = site / "syllabus.html"
    whole = page.read_text(encoding="utf-8")
    planted = (
        '<a href="lessons/02_attention.html#lesson-02-nowhere">x</a><script src="https://x.example/y.js"></script>'
    )
    try:
        page.write_text(whole.replace("</article>", planted + "</article>", 1), encoding="utf-8")
        found = problems_of(site)
    finally:
        page.write_text(whole, encoding="utf-8")
    assert found == [
        "syllabus.html: loads https://x.example/y.js from outside: ship it with the book",
        "syllabus.html: links to lessons/02_attention.html#lesson-02-nowhere, whose anchor does not exist",
    ]


def test_the_command_says_what_it_built(built):
    printed, pages = built
    assert "links checked" in printed
    assert f"{len(list(pages.rglob('*.html')))} pages" in printed
    assert sum(path.stat().st_size for path in pages.rglob("*") if path.is_file()) < 60e6


def test_every_lesson_shows_what_was_stored(site):
    page = (site / "lessons" / "03_masks.html").read_text(encoding="utf-8")
    assert "45 of 81 pairs allowed" in page
    assert 'alt="A triangle, a band, and what is left when both rules and padding act together."' in page
    assert "This control moves in the notebook" in page


def test_every_picture_has_an_alternative_text(site):
    for path in sorted(site.rglob("*.html")):
        for tag in re.findall(r"<img\b[^>]*>", path.read_text(encoding="utf-8")):
            assert re.search(r'alt="[^"]{10,}"', tag), f"{path.name}: {tag[:200]}"
