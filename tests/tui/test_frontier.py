"""The curve of error against cost in characters."""

import math

from layerwise._tool.debugtools.search.lens.rows import FrontierPoint
from layerwise._tool.tui.presenters.frontier import frontier_lines
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width

POINTS = [FrontierPoint(0, 4, 0.0, 0.1), FrontierPoint(1, 3, 0.25, 0.01), FrontierPoint(4, 0, 1.0, 0.0)]


def test_more_in_fp32_is_further_right_and_lower() -> None:
    lines = [plain(line) for line in frontier_lines(POINTS, (0.25, 0.01), 60, 5, UNICODE)]
    assert len(lines) == 6 and "100 %" in lines[-1]
    assert lines[0].startswith(" 1.0e-01") and "·" in lines[0]
    (marked,) = [number for number, line in enumerate(lines) if "●" in line]
    assert marked == 4
    assert lines[4].index("●") >= lines[0].rindex("·")


def test_it_fits_and_needs_room_and_two_errors() -> None:
    for cells in (40, 78, 118):
        assert all(width(line) <= cells for line in frontier_lines(POINTS, (0.0, math.inf), cells, 4, ASCII))
    assert frontier_lines(POINTS, (0.0, 0.1), 20, 4, UNICODE) == []
    assert frontier_lines(POINTS[:1], (0.0, 0.1), 80, 4, UNICODE) == []
    assert frontier_lines([FrontierPoint(0, 1, 0.0, None)], (0.0, math.inf), 80, 4, UNICODE) == []
