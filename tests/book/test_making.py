"""How the book is made: lessons adapted, symbols linked, pages written from data."""

import json
import re
import shutil

import nbformat
import pytest
from bookmaking import explorers, mistakes, paper_map, practice, reference, results, slides, symbols
from bookmaking.adapting import ALT_LETTERS, adapted, shortened
from bookmaking.lessons import NOTEBOOKS, BookError, Lesson, plain, read_lessons
from bookmaking.sources import prepare, with_lessons

from tinytransformer.teaching.checks import EXERCISES
from tinytransformer.teaching.exercises import Exercise, Mistake

LESSONS = read_lessons()
BY_NUMBER = {lesson.number: lesson for lesson in LESSONS}
RECAP = "## What you can do now\n\n**New symbols.** d_k: features of a key · `x`: an input.\n\n**Next:** nothing."


def small(tmp_path, *cells, number="03") -> Lesson:
    """A lesson with a title, these cells, and a recap."""
    title = nbformat.v4.new_markdown_cell(f"# {number} · Small\n\n**A promise\nin two lines.**\n\n## Begin", id="title")
    recap = nbformat.v4.new_markdown_cell(RECAP, id="recap")
    return Lesson(tmp_path / f"{number}_small.ipynb", nbformat.v4.new_notebook(cells=[title, *cells, recap]))


def text(source: str, name: str):
    return nbformat.v4.new_markdown_cell(source, id=name)


def code(source: str, name: str, **data):
    outputs = [nbformat.v4.new_output("display_data", data)] if data else []
    return nbformat.v4.new_code_cell(source, id=name, outputs=outputs)


def alt_of(cell) -> str:
    return cell.metadata["mystnb"]["image"]["alt"]


def sources(notebook) -> str:
    return "\n".join(cell.source for cell in notebook.cells)


# --- lessons


def test_every_cell_has_a_place_of_its_own(tmp_path):
    lesson = small(tmp_path, text("## Look", "look"), code("1 + 1", "look-sum"))
    found = re.findall(r"^\((lesson-[\w-]+)\)=$", sources(adapted(lesson)), re.MULTILINE)
    assert found == ["lesson-03-title", "lesson-03-look", "lesson-03-look-sum", "lesson-03-recap"]
    assert lesson.link("look-sum") == "[Look](#lesson-03-look-sum)"
    with pytest.raises(BookError, match=r"lesson 03 has no cell 'nowhere': name one of those in 03_small.ipynb"):
        lesson.link("nowhere")


def test_cells_are_named_after_what_they_are_about(tmp_path):
    cells = (text("## Build\n\nIt begins.", "build"), text("**Second, the mask.** It hides.", "mask"))
    cells += (text("Now `one` **two** three four five six seven eight.\n\nMore.", "words"), code("1 + 1", "sum"))
    lesson = small(tmp_path, *cells)
    assert [lesson.label(name) for name in ("build", "mask", "words", "sum")] == [
        "Build", "Second, the mask", "Build: Now one two three four five six …", "Build"
    ]  # fmt: skip


def test_the_notebook_is_read_and_not_changed(tmp_path):
    cells = (code("plot()", "plot", **{"image/png": "AAAA"}), text("*What to see.*", "plot-read"))
    lesson = small(tmp_path, *cells)
    before = json.dumps(lesson.notebook)
    adapted(lesson, [], {"plot": "a title"})
    assert json.dumps(lesson.notebook) == before


def test_figures_get_their_caption_as_alternative_text(tmp_path):
    caption = "*The weights of `x`:\nqueries **down**, $d_k$ across.* And more."
    lesson = small(tmp_path, code("plot()", "plot", **{"image/png": "AAAA"}), text(caption, "plot-read"))
    (cell,) = [cell for cell in adapted(lesson).cells if cell.cell_type == "code"]
    assert alt_of(cell) == "The weights of x: queries down, d_k across."
    lesson = small(tmp_path, code("plot()", "plot", **{"image/png": "AAAA"}))
    (cell,) = [cell for cell in adapted(lesson).cells if cell.cell_type == "code"]
    assert alt_of(cell) == "Figure: Begin"


def test_alternative_texts_are_short_and_whole_sentences():
    assert shortened("One. Two. Three.", most=10) == "One. Two."
    assert shortened("One very long sentence. Two.", most=5) == "One very long sentence."


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_every_figure_of_the_lessons_has_an_alternative_text(lesson):
    for cell in adapted(lesson, [], explorers.in_lesson(lesson)).cells:
        if cell.cell_type == "code" and any("image/png" in output.get("data", {}) for output in cell.outputs):
            alt = alt_of(cell)
            assert 10 < len(alt) < 2 * ALT_LETTERS, cell.id
            assert not re.search(r"[*`$]", alt), alt


def test_a_control_gets_a_note_and_its_still_figure(tmp_path):
    slider = code("widgets.interact(draw, x=3);", "move", **{"text/plain": "A control: run this notebook to move it."})
    still = code("draw(3)", "still", **{"image/png": "AAAA"})
    page = adapted(small(tmp_path, slider, still, text("*Still.*", "still-read")))
    assert "[still figure](#lesson-03-still)" in sources(page)
    assert not any("A control" in str(cell.get("outputs")) for cell in page.cells)
    alone = sources(adapted(small(tmp_path, slider)))
    assert "needs" not in alone
    assert "This control moves in the notebook" in alone
    assert "still figure" not in alone


def test_explorers_are_embedded_between_code_and_still_picture(tmp_path):
    lesson = small(tmp_path, code("explore()", "explorer", **{"image/png": "AAAA"}), text("*A caption.*", "read"))
    cells = adapted(lesson, [], {"explorer": "a sentence"}).cells
    (frame,) = [place for place, cell in enumerate(cells) if "<iframe" in cell.source]
    assert 'src="../explorer/lesson-03-explorer.html" title="Attention explorer: a sentence"' in cells[frame].source
    assert cells[frame - 1].outputs == []
    assert cells[frame + 1].outputs
    assert "remove-input" in cells[frame + 1].metadata.tags


def test_every_explorer_of_the_lessons_is_saved():
    shown = {
        (lesson.number, cell.id)
        for lesson in LESSONS
        for cell in lesson.notebook.cells
        if cell.cell_type == "code" and any("<Explorer of" in str(output.get("data", {})) for output in cell.outputs)
    }
    assert shown == {(one.lesson, one.cell) for one in explorers.SAVED}


def test_links_to_headings_lead_to_their_cell(tmp_path):
    lesson = small(tmp_path, text("See [there](#A-map).", "see"), text("## A map", "map"))
    assert "See [there](#lesson-03-map)." in sources(adapted(lesson))


def test_a_link_to_a_lesson_that_is_not_there_becomes_words(tmp_path):
    (tmp_path / "04_there.ipynb").touch()
    lesson = small(tmp_path, text("Lessons [04](04_there.ipynb) and [05](05_gone.ipynb).", "see"))
    assert "Lessons [04](04_there.ipynb) and 05." in sources(adapted(lesson))


# --- symbols


def test_the_first_use_of_a_symbol_leads_to_the_glossary(tmp_path):
    lesson = small(tmp_path, text("`d_k(3)` and $d_k$, a heading:\n\n## d_k\n\nSo d_k is small, d_k.", "one"))
    found = symbols.read_symbols([lesson], empty_notes(tmp_path))
    assert [(one.name, one.meaning) for one in found] == [("d_k", "features of a key"), ("`x`", "an input")]
    page = sources(adapted(lesson, found))
    assert "So [d_k](#symbol-03-d-k) is small, d_k." in page
    assert "[`x`](#symbol-03-x): an input" in page, "used nowhere else: in the recap"


def empty_notes(tmp_path, notes: str = "{}"):
    path = tmp_path / "symbols.json"
    path.write_text(notes)
    return path


def test_a_note_about_an_unknown_symbol_is_refused(tmp_path):
    notes = empty_notes(tmp_path, '{"03": {"q": {"more": "asks"}}}')
    with pytest.raises(BookError, match=r"symbols.json explains q, which lesson 03 does not list"):
        symbols.read_symbols([small(tmp_path)], notes)


def test_a_first_use_that_is_gone_is_refused(tmp_path):
    notes = empty_notes(tmp_path, '{"03": {"d_k": {"first": "the size [d_k] of"}}}')
    lesson = small(tmp_path)
    with pytest.raises(BookError, match=r"lesson 03 uses 'd_k' nowhere: mend its entry in symbols.json"):
        adapted(lesson, symbols.read_symbols([lesson], notes))


def test_every_symbol_is_linked_once_and_has_an_entry():
    found = symbols.read_symbols(LESSONS)
    anchors = [symbol.anchor for symbol in found]
    assert len(set(anchors)) == len(anchors) > 50
    page = symbols.page(LESSONS, found)
    for symbol in found:
        lesson = BY_NUMBER[symbol.lesson]
        assert sources(adapted(lesson, found)).count(f"](#{symbol.anchor})") == 1, symbol
        assert f"({symbol.anchor})=" in page


# --- mistakes


def test_all_mistakes_of_all_exercises_are_told():
    written = "\n".join(mistakes.pages(LESSONS).values())
    homes = mistakes.homes_of(LESSONS)
    told = [name for name in EXERCISES if name in homes]
    assert len(told) >= 60
    for name in told:
        for mistake in EXERCISES[name].mistakes:
            anchor = f"mistake-{name}-{mistake.name}".replace("_", "-").lower()
            assert f"({anchor})=" in written
            assert f"](#{anchor})" in written, "in the index"
            assert mistakes.as_text(mistake.hint, code=True) in written


def test_what_a_mistake_looks_like_is_found_by_making_it():
    def boom(x):
        raise ValueError("no")

    exercise = Exercise("double", lambda x: 2 * x, lambda: [(0,), (3,)])
    assert mistakes.looks_like(exercise, Mistake("square", "", lambda x: x * x)) == (
        "For arguments 3 the value at [] is 9, not 6."
    )
    assert mistakes.looks_like(exercise, Mistake("boom", "", boom)) == "For arguments 0 it raises ValueError: no."


def test_a_check_that_nobody_knows_is_refused(tmp_path):
    lesson = small(tmp_path, code("checks.check_nothing(f)", "stub-1"))
    with pytest.raises(BookError, match=r"a lesson calls check_nothing, which the registry does not have"):
        mistakes.entries([lesson])


def test_words_stay_words():
    assert mistakes.as_text("a*b_c <d> `e_f`", code=True) == r"a\*b\_c \<d\> `e_f`"
    assert plain("**Bold** `code` [link](x.md) $d_k$") == "Bold code link d_k"


# --- other pages


def test_every_section_of_the_paper_has_cells():
    page = paper_map.page(LESSONS)
    for section in ("1", "2", "3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4",
                    "6.1", "6.2", "6.3", "7", "Table 1", "Table 2", "Table 3", "Table 4"):  # fmt: skip
        block = re.search(rf"^\*\*{re.escape(section)}\*\* .+?\n\n((?:- .+\n)+)", page, re.MULTILINE)
        assert block, section
    assert "(#lesson-02-question)" in page


def test_sections_are_found_in_the_text(tmp_path):
    lesson = small(tmp_path, text("Sections 3.1, 3.3\nand 5.4 of the paper; lesson 2; Section 4.", "one"))
    assert paper_map.mentions(lesson) == [("3.1", "one"), ("3.3", "one"), ("5.4", "one"), ("4", "one")]


def test_exercises_have_folded_hints():
    page = practice.exercises_page(LESSONS)
    stubs = sum(len(practice.exercise_cells(lesson)) for lesson in LESSONS)
    assert page.count("· ★") == stubs
    assert page.count("<details><summary>Hint") >= stubs
    assert page.count("<details>") == page.count("</details>")


def test_assignments_show_points_and_no_solution():
    page = practice.assignments_page()
    assert page.count("Reflection, read by a person") == 4
    assert "A decoder's mask without blank rows | `decoder_mask` | 10 | 15 |" in page
    assert "SOLUTION" not in page


def test_results_have_their_commands_and_scores():
    page = results.page()
    for path in sorted(results.RESULTS.glob("*.json")):
        command = json.loads(path.read_text(encoding="utf-8")).get("command")
        assert command is None or f"`{command}`" in page, path.name
    best = json.loads((results.RESULTS / "models.json").read_text(encoding="utf-8"))["rows"][0]
    assert f"**{best['bleu']:.2f}**" in page
    assert best["signature"] in page
    assert "More measurements" not in page, "every file has its table"
    engine = json.loads((results.RESULTS / "exchange.json").read_text(encoding="utf-8"))["rows"][-1]["engines"][1]
    assert f"| {engine['engine']} | {engine['identical']:,} of {engine['sentences']:,} | {engine['bleu']:.2f} |" in page


def test_the_reference_has_every_room_and_no_data():
    pages = reference.pages()
    assert ".. automodule:: tinytransformer.model.attention" in pages["reference/model.rst"]
    assert ".. automodule:: tinytransformer.teaching.checks" in pages["reference/teaching.rst"]
    assert "mask_exercises" not in pages["reference/teaching.rst"]


def test_figures_for_slides_are_there_and_load_nothing():
    for slide in slides.SLIDES:
        path = slides.FOLDER / f"{slide.name}.svg"
        drawing = path.read_text(encoding="utf-8")
        assert drawing.rstrip().endswith("</svg>"), path.name
        assert not re.search(r'(?:href|src)="https?:|url\(http|<text\b', drawing), "no font, nothing from outside"
        assert f"figures/slides/{slide.name}.svg" in slides.page()


def test_figures_are_drawn_the_same_each_time(tmp_path, monkeypatch):
    chosen = tuple(slide for slide in slides.SLIDES if slide.name in ("smoothing", "masks"))
    monkeypatch.setattr(slides, "SLIDES", chosen)
    first = [path.read_bytes() for path in slides.write_all(tmp_path / "one")]
    assert first == [path.read_bytes() for path in slides.write_all(tmp_path / "two")]
    assert len(first) == 2


def test_links_to_lessons_in_pages():
    written = with_lessons("See {lesson 03} and {lesson 77}.\n\n{lessons}", LESSONS)
    assert "See [03 Masks](/lessons/03_masks.ipynb) and 77." in written
    assert written.count(" | [") == len(LESSONS)


def test_a_book_without_the_last_lesson(tmp_path, monkeypatch):
    """Lessons come one by one: the book is made from those that are there."""
    monkeypatch.setattr(explorers, "save_all", lambda lessons, folder: [])
    monkeypatch.setattr(mistakes, "looks_like", lambda exercise, mistake: "")
    shutil.copytree(NOTEBOOKS, tmp_path / "notebooks", ignore=shutil.ignore_patterns("1[12]_*", ".ipynb_checkpoints"))
    with pytest.raises(BookError, match=r"no cell takes up section 6.2"):
        prepare(tmp_path / "source", tmp_path / "notebooks")
    shutil.copy(NOTEBOOKS / "11_tables.ipynb", tmp_path / "notebooks")
    lessons = prepare(tmp_path / "source", tmp_path / "notebooks")
    assert [lesson.number for lesson in lessons] == [f"{number:02}" for number in range(12)]
    assert "12_after" not in (tmp_path / "source" / "syllabus.md").read_text(encoding="utf-8")


def test_no_lesson_at_all(tmp_path):
    with pytest.raises(BookError, match=r"there is no lesson in .*: give the folder with 00_start_here.ipynb"):
        read_lessons(tmp_path)
