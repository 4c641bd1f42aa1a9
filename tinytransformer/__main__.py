"""``python -m tinytransformer``: the command line."""

import sys

from tinytransformer.cli import main

sys.exit(main())
