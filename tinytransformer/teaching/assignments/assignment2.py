"""Assignment 2: heads, positions and layers."""

from tinytransformer.teaching.assignments.decoder_tasks import DECODER
from tinytransformer.teaching.assignments.head_tasks import PACKED_ATTENTION, PRUNE
from tinytransformer.teaching.assignments.layer_tasks import ENCODER, FOLD
from tinytransformer.teaching.assignments.position_tasks import PADDED, ROTARY
from tinytransformer.teaching.grading.tasks import Assignment

ASSIGNMENT = Assignment(
    "assignment2",
    "Heads, positions and layers",
    "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n",
    (PRUNE, PADDED, PACKED_ATTENTION, ROTARY, FOLD, ENCODER, DECODER),
    reflection=10,
)
