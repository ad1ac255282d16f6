"""Bisection that looks first where a fault is likely: two questions where the guess is right."""

from collections.abc import Sequence

from layerwise._tool.debugtools.search.strategies.bisect import BisectSearch
from layerwise._tool.debugtools.search.strategies.protocol import Candidate


class HintedBisect(BisectSearch):
    """guess: the likely first bad position, None: there is none. It and the one before it are asked first."""

    def __init__(self, n: int, weights: Sequence[float] | None = None, ways: int = 1, guess: int | None = None) -> None:
        super().__init__(n, weights, ways)
        self._guesses = [] if guess is None else [place for place in (guess, guess - 1) if 0 <= place < n]

    def ask(self) -> list[Candidate]:
        low, high = self._ends()
        open_guesses = [place for place in self._guesses if low < place < high and place not in self._told]
        if open_guesses and not (self._told and high == self._n):  # the first guess was good: it was wrong
            return [self.candidate(place) for place in open_guesses[: self._ways]]
        return super().ask()
