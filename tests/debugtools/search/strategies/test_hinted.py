"""Bisection with a guess: never wrong, short where the guess is right."""

from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.debugtools.search.strategies.bisect import BisectSearch, HintedBisect
from layerwise._tool.debugtools.search.strategies.protocol import Verdict


def checks(search: BisectSearch, first_bad: int) -> int:
    count = 0
    while not search.done:
        (candidate, *_) = search.ask()
        count += 1
        search.tell(candidate, Verdict.BAD if (candidate.position or 0) >= first_bad else Verdict.GOOD)
    return count


@given(n=st.integers(1, 300), data=st.data(), ways=st.integers(1, 4))
def test_the_answer_is_right_whatever_the_guess(n: int, data: st.DataObject, ways: int) -> None:
    first_bad = data.draw(st.integers(0, n))
    guess = data.draw(st.none() | st.integers(-5, n + 5))
    hinted = HintedBisect(n, None, ways, guess)
    count = checks(hinted, first_bad)
    assert hinted.result().first_bad == (first_bad if first_bad < n else None)
    assert count <= checks(BisectSearch(n, None, ways), first_bad) + 2 + n.bit_length()
    if guess == first_bad < n:
        assert count <= 2
