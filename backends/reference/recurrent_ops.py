"""LSTM, GRU and RNN in place of ONNX's own, which ignore lengths of sequences, activations, clip and coupled gates."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from layerwise._tool.backends.arrays import Array

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Softplus": lambda x: np.logaddexp(x, 0),
}
State = tuple[Array, ...]


def _clipped(function: Callable[[Array], Array], clip: float, x: Array) -> Array:
    return function(np.clip(x, -clip, clip))


class _Recurrent(OpRun):
    """A layer whose `_step` takes and returns the states of a batch, the hidden one first."""

    op_domain = ""
    activations: tuple[str, ...]
    states = 1

    def _run(
        self, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
        *more: Any, activations: Any = None, clip: Any = None, direction: Any = "forward", layout: Any = 0,
        activation_alpha: Any = None, activation_beta: Any = None, hidden_size: Any = None, **how: Any,
    ) -> tuple[Array, ...]:  # fmt: skip
        initial, rest = (*more, *[None] * self.states)[: self.states], more[self.states :]
        if layout:
            x = np.swapaxes(x, 0, 1)
            initial = tuple(None if each is None else np.swapaxes(each, 0, 1) for each in initial)
        directions, (steps, batch) = w.shape[0], x.shape[:2]
        if b is None:
            b = np.zeros((directions, 2 * w.shape[1]), x.dtype)
        names = [name.decode() if isinstance(name, bytes) else name for name in activations or ()]
        functions = self._functions(names or self.activations * directions, clip)
        ends = np.full(batch, steps) if lengths is None else lengths
        done = []
        for d in range(directions):
            state = tuple(np.zeros((batch, r.shape[-1]), x.dtype) if each is None else each[d] for each in initial)
            part = functions[d * len(self.activations) :]
            given = (w[d].T, r[d].T, b[d], *(each[d] for each in rest if each is not None))
            turned = direction == "reverse" or d == 1
            step = partial(self._step, given=given, functions=part, how=how)
            done.append(self._scan(x, state, ends, turned, step))
        y = np.stack([each[0] for each in done], 1)
        last = [np.stack([each[1][i] for each in done]) for i in range(self.states)]
        if layout:
            y, last = y.transpose(2, 0, 1, 3), [each.swapaxes(0, 1) for each in last]
        return tuple(each.astype(x.dtype) for each in (y, *last))

    def _functions(self, names: Sequence[str], clip: float | None) -> list[Callable[[Array], Array]]:
        unknown = [name for name in names if name not in _ACTIVATIONS]
        if unknown:
            raise NotImplementedError(f"activation {unknown[0]}")
        if not clip:
            return [_ACTIVATIONS[name] for name in names]
        return [partial(_clipped, _ACTIVATIONS[name], clip) for name in names]

    @staticmethod
    def _scan(
        x: Array, state: State, ends: Array, turned: bool, step: Callable[[Array, State], State]
    ) -> tuple[Array, State]:
        """All hidden states, 0 behind the end of a row, and each row's last states."""
        rows, found = np.arange(x.shape[1]), np.zeros((*x.shape[:2], state[0].shape[-1]), x.dtype)
        for t in range(x.shape[0]):
            runs = t < ends
            at = np.where(runs, ends - 1 - t, t) if turned else np.full(len(rows), t)
            new = step(x[at, rows], state)
            state = tuple(np.where(runs[:, None], one, old) for one, old in zip(new, state, strict=True))
            found[at, rows] = np.where(runs[:, None], state[0], 0)
        return found, state

    def _step(self, x: Array, state: State, given: State, functions: Sequence[Any], how: Any) -> State:
        raise NotImplementedError


class LSTM(_Recurrent):
    """Gates in the order input, output, forget, cell."""

    activations, states = ("Sigmoid", "Tanh", "Tanh"), 2

    def _step(self, x: Array, state: State, given: State, functions: Sequence[Any], how: Any) -> State:
        (w, r, b, *holes), (h, c), (f, g, last) = given, state, functions[:3]
        wide = x @ w + h @ r + b[: w.shape[1]] + b[w.shape[1] :]
        i, o, forget, new = np.split(wide, 4, -1)
        peep = np.split(holes[0], 3) if holes else [np.zeros((), x.dtype)] * 3
        i = f(i + peep[0] * c)
        forget = 1 - i if how.get("input_forget") else f(forget + peep[2] * c)
        c = forget * c + i * g(new)
        return f(o + peep[1] * c) * last(c), c


class GRU(_Recurrent):
    """Gates in the order update, reset, hidden."""

    activations = ("Sigmoid", "Tanh")

    def _step(self, x: Array, state: State, given: State, functions: Sequence[Any], how: Any) -> State:
        (w, r, b), (h,), (f, g) = given, state, functions[:2]
        size = h.shape[-1]
        own, back = b[: 3 * size], b[3 * size :]
        wide, two = x @ w + own, h @ r[:, : 2 * size] + back[: 2 * size]
        update, reset = f(wide[:, :size] + two[:, :size]), f(wide[:, size : 2 * size] + two[:, size:])
        third = r[:, 2 * size :]
        if how.get("linear_before_reset"):
            hidden = reset * (h @ third + back[2 * size :])
        else:
            hidden = (reset * h) @ third + back[2 * size :]
        return ((1 - update) * g(wide[:, 2 * size :] + hidden) + update * h,)


class RNN(_Recurrent):
    """One gate."""

    activations = ("Tanh",)

    def _step(self, x: Array, state: State, given: State, functions: Sequence[Any], how: Any) -> State:
        (w, r, b), (h,) = given, state
        return (functions[0](x @ w + h @ r + b[: w.shape[1]] + b[w.shape[1] :]),)


RECURRENT_OPS: tuple[type, ...] = (LSTM, GRU, RNN)
