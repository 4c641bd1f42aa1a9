"""Feedback: one page per student, which shows nothing but our words and, as plain text, the student's own reflection.

The page has no script, loads nothing, and says so to the browser; whatever a student wrote is escaped, and control
characters are taken out, here and in everything that reaches a terminal.
"""

import re
from html import escape

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
table { border-collapse: collapse; width: 100% } td, th { padding: .4rem .6rem; text-align: left; vertical-align: top }
tr { border-top: 1px solid #ccc } td.points, th:last-child { white-space: nowrap; text-align: right }
ul { margin: .2rem 0 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .6rem } .loud { color: #a00000 }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e6e6e6 } pre { background: #24272e }
  .loud { color: #ff9a8a } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def clean(text: object, most: int = 20_000) -> str:
    """Text without control characters (terminal escapes among them) and marks that turn the direction of writing."""
    kept = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", str(text))
    return kept if len(kept) <= most else kept[:most] + " …"


def number(points: float) -> str:
    """Points as people write them: 7, 7.5, 7.25."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def page(title: str, result: dict) -> str:
    """The page of one graded submission."""
    rows = "".join(_row(one) for one in result["tasks"])
    findings = "".join(_finding(one) for one in result["findings"])
    reflection = result["reflection"]
    given = "not read yet" if reflection["points"] is None else number(reflection["points"])
    comment = f"<p>{escape(clean(reflection['comment']))}</p>" if reflection["comment"] else ""
    text = f"<pre>{escape(clean(reflection['text']))}</pre>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width"><title>{escape(clean(title))}</title><style>{STYLE}</style></head>
<body>
<h1>{escape(clean(title))}</h1>
<p>{escape(clean(result["student"]))}: <strong>{total_line(result)}</strong></p>
{f"<h2>About the notebook</h2><ul>{findings}</ul>" if findings else ""}
<h2>Tasks</h2><table><tr><th>task</th><th>what was found</th><th>points</th></tr>{rows}
<tr><td>reflection</td><td>{comment}{text}</td><td class="points">{given} of {reflection["most"]}</td></tr></table>
</body></html>
"""


def total_line(result: dict) -> str:
    """The points so far, and whether some are still open."""
    points = sum(one["points"] for one in result["tasks"])
    most = sum(one["most"] for one in result["tasks"]) + result["reflection"]["most"]
    if result["reflection"]["points"] is None:
        return f"{number(points)} of {most} points, the reflection not yet read"
    return f"{number(points + result['reflection']['points'])} of {most} points"


def _finding(one: dict) -> str:
    loud = " class=loud" if one["serious"] else ""
    return f"<li{loud}>{escape(clean(one['about']))}: {escape(clean(one['message']))}</li>"


def _row(one: dict) -> str:
    words = escape(clean(one["status"]))
    if one["hint"]:
        words += f". {escape(clean(one['hint']))}"
    if one["messages"]:
        words += "<ul>" + "".join(f"<li>{escape(clean(message))}</li>" for message in one["messages"]) + "</ul>"
    points = f"{number(one['points'])} of {one['most']}"
    return f'<tr><td>{escape(clean(one["task"]))}</td><td>{words}</td><td class="points">{points}</td></tr>'
