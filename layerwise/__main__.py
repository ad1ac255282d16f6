"""`python -m layerwise` is the command `layerwise`."""

import sys

from tui.__main__ import main

sys.exit(main())
