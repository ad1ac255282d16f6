"""`python -m layerwise` is the command `layerwise`."""

import sys

from layerwise._tool.tui.__main__ import main

sys.exit(main())
