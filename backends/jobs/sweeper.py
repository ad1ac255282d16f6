"""What a worker's guard runs when the supervisor is gone: kills all that bears the tag of its own environment.

`python -m backends.jobs.sweeper`
"""

import os
import sys

from backends.jobs.process import TAG, sweep_tagged


def main() -> int:
    tag = os.environ.get(TAG)
    if tag:
        sweep_tagged([tag])
    return 0


if __name__ == "__main__":
    sys.exit(main())
