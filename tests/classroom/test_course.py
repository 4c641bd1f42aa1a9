"""The whole path: course, student versions by nbgrader, submissions, grades, feedback, book; stopped and resumed."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

import tinytransformer.teaching.grading.book as book
from classroom.support_classroom import ANSWERS, PUBLIC, blank, filled, right, store, text_of
from tinytransformer.cli import main
from tinytransformer.teaching.grading import classroom, reports
from tinytransformer.teaching.grading.course import ASSIGNMENTS, Course, CourseError, make, source_notebook

pytest.importorskip("nbgrader", reason="nbgrader is in requirements-class.txt; `make test` installs it")
NAME = "assignment1"
FIRST, SECOND = (task.name for task in PUBLIC[NAME].tasks[:2])
EXAMPLE = Path(__file__).resolve().parents[2] / "notebooks" / "assignments" / "private_example"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A course, made once."""
    folder = tmp_path_factory.mktemp("made") / "course"
    make(folder)
    return folder


@pytest.fixture
def course(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "course"))


def released(course: Path, name: str) -> nbformat.NotebookNode:
    return nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)


# --- what students get


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_students_version_holds_no_solution(made, name):
    source = nbformat.read(made / "source" / name / f"{name}.ipynb", as_version=4)
    notebook = released(made, name)
    text = json.dumps(notebook)
    assert "SOLUTION" not in text
    assert [cell.id for cell in notebook.cells] == [cell.id for cell in source.cells]
    for task in PUBLIC[name]:
        cells = {cell.id: cell.source for cell in source.cells}
        hidden = cells[task.name].split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0]
        lines = [line.strip() for line in hidden.splitlines() if len(line.strip()) > 25]
        assert lines or hidden.strip()
        assert not [line for line in lines if line in text], task.name
        assert "raise NotImplementedError" in {cell.id: cell.source for cell in notebook.cells}[task.name]
        assert not [mistake.hint for mistake in task.exercise.mistakes if mistake.hint in text]
    assert not any(cell.get("outputs") for cell in notebook.cells)
    assert not [word for word in ("Mistake(", "Case(", "hidden(", "reference=") if word in text]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_students_version_runs_from_top_to_bottom(made, name):
    from nbclient import NotebookClient

    notebook = released(made, name)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    printed = [output.text for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output]
    assert [text for text in printed if "Come back when" not in text] == [
        f"{task.name}: not attempted yet\n" for task in PUBLIC[name]
    ]


def test_making_a_course_again_keeps_its_secret_and_its_decisions(course):
    before = Course.load(course)
    before.points[NAME][FIRST] = 77
    before.deadlines[NAME] = "2027-02-01 23:59"
    before.save()
    make(course)
    after = Course.load(course)
    assert (after.secret, after.points[NAME][FIRST]) == (before.secret, 77)
    cells = {cell.id: cell for cell in released(course, NAME).cells}
    assert "(77 points" in cells[f"task-{FIRST}"].source
    assert cells[f"check-{FIRST}"].metadata.nbgrader.points == 77
    assert "**Hand in by 2027-02-01 23:59.**" in cells["title"].source
    assert after.assignment(NAME)[FIRST].points == 77


def test_two_courses_have_different_secrets(made, tmp_path):
    assert len(Course.load(made).secret) == 32
    os.makedirs(tmp_path / "other")
    shutil.copy(made / "course.json", tmp_path / "other")
    assert Course.load(tmp_path / "other").secret == Course.load(made).secret


# --- a private folder


def test_the_worked_example_of_a_private_folder(made, tmp_path):
    course = Course(tmp_path, "secret", str(EXAMPLE))
    public, private = PUBLIC[NAME], course.assignment(NAME)
    changed = [task.name for task in private if task != public[task.name]]
    assert changed, "the example changes something"
    notebook = {cell.id: cell.source for cell in source_notebook(course, NAME).cells}
    original = {cell.id: cell.source for cell in nbformat.read(made / "source" / NAME / f"{NAME}.ipynb", 4).cells}
    assert any(notebook[name] != original[name] for name in notebook)
    names: dict = {}
    for task in private:
        exec(private.setup, names)
        exec(task.given, names)
        exec(notebook[task.name], names)
        for case in task.hidden(5):
            task.exercise.reference(*case.arguments)


def test_a_private_folder_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "assignment1.py").write_text("CELLS = {'task-nothing': ''}")
    with pytest.raises(CourseError, match="has no cell 'task-nothing'"):
        source_notebook(Course(tmp_path, "s", str(tmp_path)), NAME)
    with pytest.raises(CourseError, match="is not there: mend its path"):
        Course(tmp_path, "s", str(tmp_path / "nowhere")).assignment(NAME)
    with pytest.raises(CourseError, match="has no task 'nothing'"):
        Course(tmp_path, "s", points={NAME: {"nothing": 3}}).assignment(NAME)


# --- grading


@pytest.fixture
def submissions(course, tmp_path):
    """A class: one who knows everything, one with a mistake, one who did nothing, one who lost the file."""
    folder, notebook = tmp_path / "submissions", released(course, NAME)
    mistake = next(iter(ANSWERS[NAME].PLANTED[SECOND]))
    wrong = right(NAME, 1) | {SECOND: text_of(SECOND, ANSWERS[NAME].PLANTED[SECOND][mistake])}
    store(filled(notebook, right(NAME), "<b>I</b> learned."), folder / "anna.ipynb")
    store(filled(notebook, wrong), folder / "ben" / "assignment1.ipynb")
    store(notebook, folder / "carla.ipynb")
    (folder / "dan.ipynb").write_text("I lost it")
    return folder


def table(path: Path) -> dict[str, dict]:
    return {row["student"]: row for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())}


@pytest.mark.box
def test_from_submissions_to_grades(course, submissions, capsys):
    assert main(["grade", str(submissions), "--course", str(course)]) == 0
    printed = capsys.readouterr().out
    assert "[4/4]" in printed
    assert "dan: NOT GRADED. dan.ipynb is not a notebook" in printed
    assert "4 submissions: 3 graded (0 of them before), 1 not" in printed

    grades = table(course / "grades.csv")
    points = PUBLIC[NAME][SECOND].points
    lost = grades.pop("dan")
    assert lost["needs a person"].startswith("NOT GRADED: dan.ipynb is not a notebook")
    assert (lost["total"], lost["task 1"]) == ("", ""), "not a zero"
    assert {name: row["total"] for name, row in grades.items()} == {"anna": "90", "ben": str(90 - points), "carla": "0"}
    assert {row["needs a person"] for row in grades.values()} == {"reflection"}
    assert (grades["ben"]["task 2"], grades["ben"]["out of"]) == ("0", "100")

    mistake = PUBLIC[NAME][SECOND].exercise.mistakes
    shown = (course / "feedback" / NAME / "ben.html").read_text(encoding="utf-8")
    assert any(one.hint.split("`")[0].split("'")[0][:30] in shown for one in mistake)
    assert "&lt;b&gt;I&lt;/b&gt; learned." in (course / "feedback" / NAME / "anna.html").read_text(encoding="utf-8")
    assert (course / "feedback" / NAME / "carla.html").read_text(encoding="utf-8").count("not attempted") == 7

    with book.opened(course) as gradebook:
        assert gradebook.find_submission(NAME, "anna").score == 90
        assert gradebook.find_submission(NAME, "ben").needs_manual_grade
        assert gradebook.find_grade(f"check-{SECOND}", NAME, NAME, "ben").score == 0

    # Again: nothing is graded twice. The teacher reads reflections; the points arrive everywhere.
    path = course / "reflections" / f"{NAME}.csv"
    rows = table(path)
    assert rows["anna"]["text"] == "<b>I</b> learned."
    rows["anna"] |= {"points": "8.5", "comment": "well seen"}
    path.write_text(reports.table(["student", "points", "comment", "text"], list(rows.values())), encoding="utf-8")
    assert main(["grade", str(submissions), "--course", str(course)]) == 0
    assert "3 graded (3 of them before)" in capsys.readouterr().out
    assert table(course / "grades.csv")["anna"]["total"] == "98.5"
    assert "well seen" in (course / "feedback" / NAME / "anna.html").read_text(encoding="utf-8")
    with book.opened(course) as gradebook:
        assert gradebook.find_submission(NAME, "anna").score == 98.5

    # One student again, and one who handed in anew.
    store(filled(released(course, NAME), right(NAME, 2)), submissions / "carla.ipynb")
    assert main(["grade", str(submissions), "--course", str(course), "--regrade", "ben"]) == 0
    printed = capsys.readouterr().out
    assert "3 graded (1 of them before)" in printed
    assert table(course / "grades.csv")["carla"]["total"] == "90"
    assert table(course / "grades.csv")["ben"]["total"] == str(90 - points), "graded twice, the same grade"


@pytest.mark.box
def test_killed_half_way_it_goes_on(course, tmp_path):
    folder, notebook = tmp_path / "submissions", released(course, NAME)
    for student in ("anna", "ben", "carla"):
        store(filled(notebook, {FIRST: right(NAME)[FIRST]}), folder / f"{student}.ipynb")
    command = [sys.executable, "-m", "tinytransformer", "grade", str(folder), "--course", str(course), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = course / "graded" / NAME
    while process.poll() is None and not list(done.glob("*.json")):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = {path.name: path.read_bytes() for path in done.glob("*.json")}
    assert 1 <= len(first) < 3
    assert not (course / "grades.csv").exists()
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"3 graded ({len(first)} of them before)" in finished.stdout
    assert {name: (done / name).read_bytes() for name in first} == first
    assert len(table(course / "grades.csv")) == 3


@pytest.mark.box
def test_time_of_a_whole_submission_is_limited(course, tmp_path, monkeypatch):
    monkeypatch.setattr(classroom, "SUBMISSION_SECONDS", 6.0)
    sleep = {task.name: f"def {task.name}(*a):\n    import time\n    time.sleep(600)" for task in PUBLIC[NAME]}
    store(filled(blank(NAME), sleep), tmp_path / "in" / "anna.ipynb")
    begun = time.monotonic()
    [result] = classroom.grade_class(Course.load(course), tmp_path / "in", print)
    assert time.monotonic() - begun < 40
    assert result["tasks"][0]["points"] == 0
    assert "took too long" in result["tasks"][0]["messages"][0]
    assert result["tasks"][-1]["status"] == "needs a person"
    assert "the seconds of the whole submission".split()[-1] in result["tasks"][-1]["messages"][0]


@pytest.mark.parametrize("name", ["..ipynb", "=cmd.ipynb", "a\x1bb.ipynb", "a..b.ipynb", "-rf.ipynb", "<b>.ipynb"])
def test_names_that_could_do_harm_are_refused(name, tmp_path):
    (tmp_path / name).write_text("{}")
    if name.startswith("."):
        assert classroom.collect(tmp_path) == []
        return
    with pytest.raises(CourseError, match="rename the file"):
        classroom.collect(tmp_path)


def test_folders_as_nbgrader_collects_them(tmp_path):
    store(blank(NAME), tmp_path / "anna" / NAME / f"{NAME}.ipynb")
    store(blank(NAME), tmp_path / "anna" / ".ipynb_checkpoints" / f"{NAME}.ipynb")
    assert [(one.student, one.path.parent.name) for one in classroom.collect(tmp_path)] == [("anna", NAME)]


def test_two_notebooks_for_one_assignment_need_a_person(tmp_path):
    store(blank(NAME), tmp_path / "anna" / "first.ipynb")
    store(blank(NAME), tmp_path / "anna" / "second.ipynb")
    store(blank("assignment2"), tmp_path / "anna" / "third.ipynb")
    found = classroom.one_each(classroom.collect(tmp_path), list(PUBLIC.values()))
    told = {one.path.name: text if isinstance(text, str) else "" for one, text in found.items()}
    assert told["first.ipynb"] == "first.ipynb is one of 2 notebooks for assignment1: keep one of them"
    assert (bool(told["second.ipynb"]), told["third.ipynb"]) == (True, "")


def test_bad_input(course, tmp_path):
    with pytest.raises(CourseError, match="is no folder"):
        classroom.collect(tmp_path / "nowhere")
    with pytest.raises(CourseError, match="holds no submission"):
        classroom.grade_class(Course.load(course), _empty(tmp_path), print)
    with pytest.raises(CourseError, match="Make one with `make class`"):
        Course.load(tmp_path)
    (tmp_path / "course.json").write_text("{")
    with pytest.raises(CourseError, match="cannot be read"):
        Course.load(tmp_path)


def _empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("text", "message"), [("many", "write a number"), ("11", "there are 0 to 10"), ("-1", "0 to 10")]
)
def test_reflection_points_that_cannot_be(text, message, course):
    result = {"student": "anna", "reflection": {"text": "", "most": 10}}
    (course / "reflections").mkdir()
    (course / "reflections" / f"{NAME}.csv").write_text(f"student,points,comment\nanna,{text},\n")
    with pytest.raises(CourseError, match=message):
        reports.reflections(Course.load(course), NAME, [result])


def test_a_formula_in_a_table_is_text():
    assert reports.table(["a"], [{"a": "=1+1"}]) == "a\n'=1+1\n"


def test_late_files_are_noted(course, tmp_path):
    plan = Course.load(course)
    path = store(blank(NAME), tmp_path / "anna.ipynb")
    plan.deadlines[NAME] = "2020-01-01 12:00"
    assert "after the deadline" in classroom._late(classroom.Handed("anna", path), plan, NAME)[0].message
    plan.deadlines[NAME] = "2999-01-01 12:00"
    assert classroom._late(classroom.Handed("anna", path), plan, NAME) == []
    plan.deadlines[NAME] = "soon"
    with pytest.raises(CourseError, match="write it as 2027-02-01"):
        classroom._late(classroom.Handed("anna", path), plan, NAME)
