"""Assignment 3: training."""

from tinytransformer.teaching.assignments.batch_tasks import BATCHES, SHIFT
from tinytransformer.teaching.assignments.loss_tasks import LOSS, TARGETS
from tinytransformer.teaching.assignments.run_tasks import PERPLEXITY, TRAIN
from tinytransformer.teaching.assignments.schedule_tasks import ADAM, RATES
from tinytransformer.teaching.grading.tasks import Assignment

ASSIGNMENT = Assignment(
    "assignment3",
    "Training",
    "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n",
    (RATES, SHIFT, TARGETS, LOSS, PERPLEXITY, BATCHES, ADAM, TRAIN),
    reflection=10,
)
