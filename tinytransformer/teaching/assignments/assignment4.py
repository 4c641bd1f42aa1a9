"""Assignment 4: decoding, BLEU and looking inside."""

from tinytransformer.teaching.assignments.antecedent_tasks import ANTECEDENT
from tinytransformer.teaching.assignments.bleu_tasks import COMPARE, COUNTS
from tinytransformer.teaching.assignments.inside_tasks import ALIGNED, ERRORS
from tinytransformer.teaching.assignments.search_tasks import BEAM_STEP, BEST
from tinytransformer.teaching.assignments.table_tasks import TABLE
from tinytransformer.teaching.grading.tasks import Assignment

ASSIGNMENT = Assignment(
    "assignment4",
    "Decoding, BLEU and looking inside",
    "import math\nfrom collections import Counter\n\nimport torch\nfrom torch import Tensor\n",
    (BEST, BEAM_STEP, TABLE, COUNTS, COMPARE, ALIGNED, ERRORS, ANTECEDENT),
    reflection=10,
)
