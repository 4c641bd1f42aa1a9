"""The attention explorer: every head of every layer to look at, in a notebook or as one page without a network.

Attention comes in as records, as plain weights, or from a translator; the model itself is never imported. Read the
files in this order: data, aggregates, state, interventions, gold, session, page, widget, front. The drawing is done by
``explorer.js`` with ``explorer.css``, the same for the notebook's widget and the saved page.
"""

from tinytransformer.inspection.explorer.data import ExplorerError
from tinytransformer.inspection.explorer.front import Explorer, explore

__all__ = ["Explorer", "ExplorerError", "explore"]
