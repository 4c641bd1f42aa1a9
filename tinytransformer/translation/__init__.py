"""Translation: a trained model and text come in, text and scores go out.

Read the files in this order: greedy, beam_search, refinement, parallel, translator, evaluation, bracketing,
diversification, card.
"""
