"""The paper's tables, re-run small, and what came after: settings come in, results files go out, and the lessons draw
from those files.

Read the files in this order: paper, runs, measuring, layer_kinds, generating, table1, costs, plan, lengths, table2,
variants, table3, table4, refinement, long, practice, families, __main__. Each table is one command that goes on where
it stopped: ``python -m tinytransformer.experiments table3``.
"""
