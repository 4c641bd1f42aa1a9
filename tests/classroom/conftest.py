import pytest

from tinytransformer.teaching.grading.box import bubblewrap


def pytest_collection_modifyitems(items):
    if bubblewrap():
        return
    for item in items:
        if item.get_closest_marker("box"):
            item.add_marker(pytest.mark.skip(reason="bubblewrap is not installed or cannot make a box here"))
