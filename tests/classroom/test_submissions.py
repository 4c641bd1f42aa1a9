"""The pre-check: whatever happened to a notebook is named, and nothing becomes a silent zero."""

import json
import os

import pytest

from classroom.support_classroom import PUBLIC, blank, filled, right, store
from tinytransformer.cli import main
from tinytransformer.teaching.grading.answers import stub
from tinytransformer.teaching.grading.submissions import FILE_BYTES, Submission, SubmissionError, read, read_notebook

NAME = "assignment1"
TASK = PUBLIC[NAME].tasks[1].name
OTHER = PUBLIC[NAME].tasks[2].name


@pytest.fixture
def solved():
    return filled(blank(NAME), right(NAME), "What I learned.")


def submitted(notebook, tmp_path) -> Submission:
    return read(store(notebook, tmp_path / "anna.ipynb"), list(PUBLIC.values()))


def cell(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


def told(submission: Submission) -> list[str]:
    return [str(finding) for finding in submission.findings]


def test_an_untouched_copy_has_every_cell(tmp_path):
    submission = submitted(blank(NAME), tmp_path)
    assert set(submission.answers) == {task.name for task in PUBLIC[NAME]}
    names = [*(task.name for task in PUBLIC[NAME]), "reflection"]
    assert told(submission) == [f"note, {name}: not attempted yet" for name in names]


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("def f(x):\n    raise NotImplementedError", True),
        ('def f(x):\n    """Doc."""\n    # YOUR CODE HERE\n    raise NotImplementedError()', True),
        ("def f(x):\n    return x\n    # YOUR CODE HERE\n    raise NotImplementedError", False),
        ("def f(x):\n    return x\n\n\ndef g(x):\n    raise NotImplementedError", False),
        ("def f(x):\n    raise NotImplementedError\n\n\ndef f(x):\n    return x", False),
        ("def f(x): return +", False),
    ],
    ids=range(6),
)
def test_only_an_untouched_function_counts_as_empty(text, empty):
    assert stub(text, "f") is empty


def test_a_good_copy_has_nothing_to_tell(solved, tmp_path):
    submission = submitted(solved, tmp_path)
    assert (submission.assignment.name, submission.findings) == (NAME, ())
    assert submission.reflection == "What I learned."
    assert submission.answers == right(NAME)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_assignment_is_recognised(name, tmp_path):
    assert submitted(blank(name), tmp_path).assignment.name == name


def test_a_deleted_answer(solved, tmp_path):
    solved.cells.remove(cell(solved, TASK))
    submission = submitted(solved, tmp_path)
    assert TASK not in submission.answers
    assert f"PROBLEM, {TASK}: its cell is missing" in told(submission)[0]


def test_a_lost_mark_is_made_good_and_said(solved, tmp_path):
    cell(solved, TASK).metadata = {}
    submission = submitted(solved, tmp_path)
    assert submission.answers[TASK] == right(NAME)[TASK]
    assert told(submission) == [f"note, {TASK}: the answer's cell lost its mark; another cell that defines it is taken"]


def test_all_marks_lost(solved, tmp_path):
    for one in solved.cells:
        one.metadata = {}
    submission = submitted(solved, tmp_path)
    assert submission.answers == right(NAME)
    assert any("reflection: its cell is missing" in line for line in told(submission))


def test_a_renamed_function(solved, tmp_path):
    cell(solved, TASK).source = "def my_own_name(x):\n    return x"
    submission = submitted(solved, tmp_path)
    assert TASK not in submission.answers
    assert told(submission) == [
        f"PROBLEM, {TASK}: its cell does not define `{TASK}`: was the function renamed? Give it its name back"
    ]


def test_a_copied_cell_that_is_the_same_does_no_harm(solved, tmp_path):
    solved.cells.append(cell(solved, TASK))
    submission = submitted(solved, tmp_path)
    assert submission.answers == right(NAME)
    assert [line for line in told(submission) if "PROBLEM" in line] == []
    assert any("cell ids that occur twice" in line for line in told(submission))
    assert any("a cell was copied" in line for line in told(submission))


def test_copies_that_differ_need_a_person(solved, tmp_path):
    second = json.loads(json.dumps(cell(solved, TASK)))
    second["source"] = f"def {TASK}(*a):\n    return 1"
    solved["cells"] = [*solved.cells, second]
    submission = submitted(solved, tmp_path)
    assert TASK not in submission.answers
    assert any("and they differ" in line for line in told(submission))


def test_two_definitions_without_marks_need_a_person(solved, tmp_path):
    cell(solved, TASK).metadata = {}
    cell(solved, "setup").source += f"\n\ndef {TASK}(*a):\n    return 1"
    submission = submitted(solved, tmp_path)
    assert TASK not in submission.answers
    assert any("2 cells define" in line for line in told(submission))


def test_a_helper_in_another_cell_is_seen_before_it_hurts(solved, tmp_path):
    cell(solved, TASK).source = f"def {TASK}(ids, pad_id):\n    return helper(ids, pad_id)"
    assert told(submitted(solved, tmp_path)) == [
        f"note, {TASK}: it uses `helper`, which this cell does not define: an answer must stand alone, put helpers "
        "into its cell"
    ]


def test_an_import_that_the_box_does_not_have(solved, tmp_path):
    cell(solved, TASK).source += "\nfrom tinytransformer.model.masks import causal_mask\n"
    assert told(submitted(solved, tmp_path)) == [
        f"note, {TASK}: it imports tinytransformer.model.masks, which does not exist where this task is graded"
    ]


def test_python_that_is_none(solved, tmp_path):
    cell(solved, TASK).source = f"def {TASK}(ids):\n    return ids +"
    submission = submitted(solved, tmp_path)
    assert told(submission) == [f"note, {TASK}: this cell is not valid Python: look at line 2"]
    assert TASK in submission.answers


def test_huge_outputs_are_said_and_not_read(solved, tmp_path):
    cell(solved, "setup").outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * (2 << 20)}]
    assert any("its outputs have 2.0 MB" in line for line in told(submitted(solved, tmp_path)))


def test_a_huge_answer_is_refused(solved, tmp_path):
    cell(solved, TASK).source += "\n# " + "x" * 200_000
    submission = submitted(solved, tmp_path)
    assert any("characters, at most" in line for line in told(submission))
    assert TASK not in submission.answers


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a notebook: it is no JSON text"),
        (b"\xff\xfe", "is not a notebook"),
        (b"<html>", "Download it again from Jupyter"),
        (b"[1, 2]", "is not a notebook of format 4"),
        (b'{"cells": 3}', "is not a notebook of format 4"),
        (b'{"cells": [3]}', "is not a notebook of format 4"),
        (b'{"worksheets": []}', "is not a notebook of format 4"),
        (b'{"cells": []}', "holds no task of assignment1"),
        (b'{"cells": [{"cell_type": "code", "metadata": 3, "source": 5, "id": []}]}', "holds no task"),
        (b'{"cells": [{"metadata": {"nbgrader": {"grade_id": {}}}, "source": [3, {}]}]}', "holds no task"),
    ],
    ids=range(10),
)
def test_what_is_no_notebook_is_refused_with_a_reason(content, message, tmp_path):
    path = tmp_path / "anna.ipynb"
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=message):
        read(path, list(PUBLIC.values()))


def test_files_that_are_too_large_and_other_things(tmp_path):
    path = tmp_path / "anna.ipynb"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES + 1)
    with pytest.raises(SubmissionError, match="at most 20 are read: clear all outputs"):
        read_notebook(path)
    with pytest.raises(SubmissionError, match="cannot be opened"):
        read_notebook(tmp_path / "nobody.ipynb")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.ipynb")
        with pytest.raises(SubmissionError, match="not an ordinary file"):
            read_notebook(tmp_path / "pipe.ipynb")


def test_the_command_tells_a_student(solved, tmp_path, capsys):
    path = store(solved, tmp_path / "assignment1.ipynb")
    assert main(["precheck", str(path)]) == 0
    assert "7 of 7 answers found, 7 attempted" in capsys.readouterr().out
    solved.cells.remove(cell(solved, TASK))
    store(solved, path)
    assert main(["precheck", str(path), str(tmp_path / "nobody.ipynb")]) == 1
    printed = capsys.readouterr().out
    assert f"PROBLEM, {TASK}: its cell is missing" in printed
    assert "nobody.ipynb: PROBLEM: nobody.ipynb cannot be opened" in printed
    assert OTHER not in printed
