"""Translation: a trained model and source ids come in, target ids go out.

Read the files in this order: greedy, beam_search.
"""
