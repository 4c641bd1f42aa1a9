"""Reports: from everything graded so far to nbgrader's book, a page for each student, and tables for the teacher."""

import csv
import io
import json
from collections.abc import Sequence

import tinytransformer.teaching.grading.book as book
import tinytransformer.teaching.grading.feedback as feedback
from tinytransformer.teaching.grading.course import Course, CourseError, write
from tinytransformer.teaching.grading.tasks import Assignment


def publish(course: Course, assignments: Sequence[Assignment], lost: Sequence[dict] = ()) -> None:
    """From everything graded so far: reflections to be read, nbgrader's book, feedback pages, ``grades.csv``. What
    could not be graded has its line there, too, without points."""
    rows = [
        {"student": one["student"], "needs a person": f"NOT GRADED: {feedback.clean(one['problem'], 300)}"}
        for one in lost
    ]
    with book.opened(course.folder) as opened:
        for assignment in assignments:
            results = graded_results(course, assignment.name)
            read_by_teacher = reflections(course, assignment.name, results)
            for result in results:
                result["reflection"] |= read_by_teacher.get(result["student"], {"points": None, "comment": ""})
                book.record(opened, assignment, result)
                title = f"{assignment.title} ({assignment.name})"
                place = course.folder / "feedback" / assignment.name / f"{result['student']}.html"
                write(place, feedback.page(title, result))
                rows.append(_row(result))
    most = max((sum(key.startswith("task ") for key in row) for row in rows), default=0)
    columns = ["student", "assignment", "total", "out of", "reflection", "needs a person"]
    columns += [f"task {number + 1}" for number in range(most)]
    write(course.folder / "grades.csv", table(columns, rows))


def graded_results(course: Course, name: str) -> list[dict]:
    """The stored results of one assignment."""
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((course.folder / "graded" / name).glob("*.json"))
    ]


def reflections(course: Course, name: str, results: Sequence[dict]) -> dict[str, dict]:
    """The points that a teacher entered in ``reflections/<assignment>.csv``; new students get a line there."""
    path = course.folder / "reflections" / f"{name}.csv"
    lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")))) if path.is_file() else []
    if lines and not {"student", "points", "comment"} <= set(lines[0]):
        raise CourseError(f"{path} needs the columns student, points and comment in its first line")
    known, found = {row["student"]: row for row in lines}, {}
    for result in results:
        row = known.setdefault(result["student"], {"student": result["student"], "points": "", "comment": ""})
        row["text"] = feedback.clean(result["reflection"]["text"])
        text, most = row["points"].strip(), result["reflection"]["most"]
        try:
            points = float(text) if text else None
        except ValueError:
            raise CourseError(f"{path}: {row['student']} has {text!r} points: write a number, or nothing") from None
        if points is not None and not 0 <= points <= most:
            raise CourseError(f"{path}: {row['student']} has {text} points, there are 0 to {most}")
        found[result["student"]] = {"points": points, "comment": row["comment"]}
    if known:
        write(path, table(["student", "points", "comment", "text"], list(known.values())))
    return found


def _row(result: dict) -> dict:
    tasks, reflection = result["tasks"], result["reflection"]
    row = {f"task {number + 1}": feedback.number(one["points"]) for number, one in enumerate(tasks)}
    open_tasks = [one["task"] for one in tasks if one["status"] == "needs a person"]
    total = sum(one["points"] for one in tasks) + (reflection["points"] or 0.0)
    return row | {
        "student": result["student"],
        "assignment": result["assignment"],
        "total": feedback.number(total),
        "out of": sum(one["most"] for one in tasks) + reflection["most"],
        "reflection": "" if reflection["points"] is None else feedback.number(reflection["points"]),
        "needs a person": " ".join(open_tasks + ["reflection"] * (reflection["points"] is None)),
    }


def table(columns: list[str], rows: Sequence[dict]) -> str:
    """Comma-separated values. A cell that a spreadsheet would take for a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: f"'{value}" if str(value)[:1] in tuple("=+-@\t\r") and value else value for key, value in row.items()}
        )
    return out.getvalue()
