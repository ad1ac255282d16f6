"""The real comparison at a pace that a test can follow: each row takes LAYERWISE_TEST_PAUSE seconds longer."""

import os
import time
from typing import Any

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.debugtools.compare.action import compare

EXTRA_ACTIONS = "compare=support.slowcompare:slow_compare"


def slow_compare(context: JobContext) -> object:
    """The action `compare`, slowed down."""
    pause = float(os.environ.get("LAYERWISE_TEST_PAUSE", "0.02"))
    write = context.row

    def row(table: str, values: dict[str, Any]) -> None:
        write(table, values)
        time.sleep(pause)

    context.row = row  # type: ignore[method-assign]
    return compare(context)
