"""Answers to the exercises, as learners might write them, by lesson; `blind` was written without the checks.

``RIGHT[exercise]`` lists correct functions, written in two ways or more; ``PLANTED[exercise][mistake]`` is a function
that makes this mistake. They are written apart from the checks, which recognise a mistake by computing it in their own
way.
"""

from importlib import import_module
from pkgutil import iter_modules

RIGHT, PLANTED = {}, {}
for _module in iter_modules(__path__):
    _answers = import_module(f"{__name__}.{_module.name}")
    for _name, _functions in _answers.RIGHT.items():
        RIGHT.setdefault(_name, []).extend(_functions)
    for _name, _functions in _answers.PLANTED.items():
        PLANTED.setdefault(_name, {}).update(_functions)
