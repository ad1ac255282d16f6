"""Bisection with verdicts that are wrong at rate p: how often the answer is wrong, and how many checks it takes.

`python -m benchmarks.flaky [RUNS]`: RUNS simulated searches a row over n = 1000 positions, the first bad one drawn
uniformly. symmetric: wrong verdicts of either kind; one-sided: only passes that should have failed; unknown: symmetric,
and the search is not told p. bound: (log2 n + log2 1/delta) / (1 - H(p)), for symmetric errors at known rates.
"""

import sys
from collections.abc import Callable
from math import log2

import numpy as np

from layerwise._tool.debugtools.search.strategies.flaky import FlakyBisect
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.debugtools.search.strategies.repeat import quantile

N, RATES, DELTAS = 1000, (0.1, 0.2, 0.3), (0.05, 0.01)
SEARCHES: dict[str, Callable[[float, float], FlakyBisect]] = {
    "symmetric": lambda p, delta: FlakyBisect(N, p, p, delta),
    "one-sided": lambda p, delta: FlakyBisect(N, p, 0.0, delta),
    "unknown p": lambda p, delta: FlakyBisect(N, None, None, delta),
}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"n = {N}, {runs} runs a row ({runs // 10} where p is unknown); seed = row number")
    print(
        f"{'errors':10} {'p':>4} {'delta':>6} {'wrong':>7} {'95 % interval':>17} {'mean':>7} {'95th':>6} {'bound':>6}"
    )
    seed = 0
    for kind in SEARCHES:
        for p in RATES:
            for delta in DELTAS:
                row(kind, p, delta, runs // 10 if kind == "unknown p" else runs, seed)
                seed += 1


def row(kind: str, p: float, delta: float, runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    outcomes = [simulate(SEARCHES[kind](p, delta), p, 0.0 if kind == "one-sided" else p, rng) for _ in range(runs)]
    wrong = sum(not right for right, _ in outcomes)
    checks = np.array([count for _, count in outcomes])
    low, high = (quantile(q, 1 + wrong, 1 + runs - wrong) for q in (0.025, 0.975))
    bound = f"{(log2(N) + log2(1 / delta)) / (1 - entropy(p)):6.1f}" if kind == "symmetric" else "     -"
    print(
        f"{kind:10} {p:4} {delta:6} {wrong / runs:7.4f} {low:8.4f}-{high:.4f} "
        f"{checks.mean():9.1f} {np.percentile(checks, 95):6.0f} {bound}",
        flush=True,
    )


def simulate(search: FlakyBisect, false_good: float, false_bad: float, rng: np.random.Generator) -> tuple[bool, int]:
    """Whether the answer was right, and the checks it took."""
    first = int(rng.integers(N))
    while not search.done:
        candidate = search.ask()[0]
        bad = candidate.items[0] >= first
        wrong = rng.random() < (false_good if bad else false_bad)
        search.tell(candidate, Verdict.BAD if bad != wrong else Verdict.GOOD)
    return search.result().first_bad == first, search.progress().judged


def entropy(p: float) -> float:
    return -(p * log2(p) + (1 - p) * log2(1 - p))


if __name__ == "__main__":
    main()
