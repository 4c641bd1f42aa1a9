"""Grading: a folder of notebooks comes in; points, a page of feedback for each student and a book go out. No student
code is ever run or imported by the process that knows the answers.

Read the files in this order: watch, tasks, wire, inside, box, answers, submissions, scoring, feedback,
book, course, reports, classroom.
"""
