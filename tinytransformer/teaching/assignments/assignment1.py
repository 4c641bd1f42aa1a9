"""Assignment 1: attention and masks."""

from tinytransformer.teaching.assignments.attention_tasks import BACKWARD, SCORE_GAPS
from tinytransformer.teaching.assignments.audit_tasks import AUDIT
from tinytransformer.teaching.assignments.band_tasks import BAND
from tinytransformer.teaching.assignments.mask_tasks import DECODER_MASK, PACKED_MASK
from tinytransformer.teaching.assignments.stream_tasks import ABSORB
from tinytransformer.teaching.grading.tasks import Assignment

ASSIGNMENT = Assignment(
    "assignment1",
    "Attention and masks",
    "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor\n",
    (SCORE_GAPS, DECODER_MASK, PACKED_MASK, AUDIT, BAND, ABSORB, BACKWARD),
    reflection=10,
)
