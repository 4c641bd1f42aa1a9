"""Panels whose rows are not queries say what they are."""

import numpy as np

from tinytransformer.inspection import plots


def test_rows_of_panels_have_the_name_they_are_given():
    panels = {"2 heads": (np.eye(2), ["head 0", "head 1"], ["1st", "2nd"], None)}
    assert plots.attention_panels(panels, rows="head").axes[0].get_ylabel() == "head"
    assert plots.attention_panels(panels).axes[0].get_ylabel() == "query"
