"""Whether the line to the terminal is slow, when a frame may be sent over it, and what a style costs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from textual.color import Color

from layerwise._tool.tui.state.line import FRAME_EVERY, RATE, LineSpeed, LineWish, Pace
from layerwise._tool.tui.themes import role_style
from layerwise._tool.tui.themes.lean import TerminalColours, lean_style


def measured(*seconds: float) -> LineSpeed:
    speed = LineSpeed()
    for number, answer in enumerate(seconds):
        assert speed.may_ask(10.0 * number)
        speed.asked(10.0 * number)
        speed.answered(10.0 * number + answer)
    return speed


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ((), False), ((0.01, 0.02), False), ((0.3,), False), ((0.3, 0.05, 0.3), False), ((0.3, 0.3), True),
        ((2.0,), True), ((2.0, 0.15, 0.15, 0.15), True), ((2.0, 0.05, 0.05), True), ((2.0, 0.05, 0.05, 0.05), False),
    ],
)  # fmt: skip
def test_a_line_is_slow_when_answers_are_late_twice_or_very_late(seconds: tuple[float, ...], slow: bool) -> None:
    assert measured(*seconds).slow is slow


def test_an_answer_that_nobody_asked_for_or_that_never_comes_changes_nothing() -> None:
    speed = LineSpeed()
    assert not speed.answered(5.0) and not speed.slow
    speed.asked(0.0)
    assert not speed.may_ask(6.0) and speed.may_ask(11.0)


def test_the_user_and_his_environment_are_above_what_is_measured() -> None:
    assert LineWish.of(None, None).slow is None and LineWish.of("", True).slow is True
    assert LineWish.of("1", False).slow is True and LineWish.of("0", True).slow is False


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 20_000), st.booleans()), min_size=1, max_size=40))
def test_frames_are_no_more_than_the_line_takes(steps: list[tuple[float, int, bool]]) -> None:
    """By themselves RATE bytes a second and the last frame; four frames a second whatever is typed."""
    pace, now, times, own = Pace(), 0.0, [], 0
    pace.slow = True
    for later, size, key in steps:
        now += later
        if key:
            pace.key()
        now += pace.wait(now)
        pace.sent(now, size)
        own = size if key else own + size
        times = [*([] if key else times), now]
        before = own - size
        assert key or before <= (now - times[0]) * RATE + 1e-3
    assert all(after - before >= FRAME_EVERY - 1e-9 for before, after in pairwise(times))
    pace.slow = False
    assert pace.wait(now) == 0.0


def test_styles_of_a_slow_line_are_short_and_keep_verdicts_apart() -> None:
    def cost(role: str, lean: bool) -> int:
        style = lean_style(role) if lean else role_style("dark", role)
        return len(style.render("x", color_system=ColorSystem.TRUECOLOR))

    roles = ("", "dim", "good", "warn", "bad", "head", "cursor", "tab", "tab-on", "decade3")
    assert all(cost(role, True) <= 16 < cost(role, False) for role in roles)
    assert len({str(lean_style(role)) for role in ("", "good", "warn", "bad", "input-cursor", "strong")}) == 6
    whole = role_style("dark", "bad") + lean_style("good")
    [(text, style, _)] = TerminalColours().apply([*_segments("x", whole)], Color(0, 0, 0))
    assert text == "x" and style is not None and style.bgcolor is None and style.color == lean_style("good").color


def _segments(text: str, style: object) -> list[object]:
    from rich.segment import Segment

    return [Segment(text, style)]  # type: ignore[arg-type]
