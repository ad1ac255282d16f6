"""The Beta distribution with whole parameters: what k failures in m trials say of a failure rate.

With a uniform prior the posterior of the rate is Beta(1 + failures, 1 + passes), and P(rate < x) is a binomial tail.
"""

from math import exp, lgamma, log, log1p


def below(x: float, a: int, b: int) -> float:
    """P(rate < x) for rate ~ Beta(a, b), a and b positive whole numbers: P(Binomial(a + b - 1, x) >= a)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    n = a + b - 1
    if a > x * n:
        return _tail(n, x, range(a, n + 1))
    return 1.0 - _tail(n, x, range(a - 1, -1, -1))


def quantile(probability: float, a: int, b: int) -> float:
    """The x with P(rate < x) = probability, to about 1e-12."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, a, b) < probability else (low, middle)
    return (low + high) / 2


def _tail(n: int, x: float, counts: range) -> float:
    """Sum of the Binomial(n, x) terms at `counts`, which fall from the first on."""
    term = exp(_log_term(n, counts[0], x)) if counts else 0.0
    total, ratio = 0.0, x / (1.0 - x)
    for k in counts:
        total += term
        if term < total * 1e-17:
            break
        term *= (n - k) / (k + 1) * ratio if counts.step > 0 else k / (n - k + 1) / ratio
    return min(total, 1.0)


def _log_term(n: int, k: int, x: float) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(x) + (n - k) * log1p(-x)
