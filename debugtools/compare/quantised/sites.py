"""Finds what a graph holds in few bits: quantised weights and activations, with how their codes become values."""

from collections.abc import Callable, Container, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import onnx
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.compare.quantised.blocks import block_weight
from layerwise._tool.debugtools.compare.quantised.constants import Constants, at
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.operators import (
    BLOCKS,
    DEQUANTIZE,
    DYNAMIC,
    INTEGER,
    QUANTIZE,
    SUMMING,
    UNREAD,
    VIEWS,
    channel_axis,
    operator_of,
)
from layerwise._tool.debugtools.compare.quantised.weights import Weights
from layerwise._tool.debugtools.compare.quantised_row import Form, Role

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

BROKEN = (LayerwiseError, ValueError, IndexError, KeyError, TypeError, ArithmeticError)
"""What parts that do not fit each other raise."""
_FEW = 4  # views that are looked through


class Reading(Struct, frozen=True, eq=False):
    """A node that takes codes, and how it understands them."""

    i: int
    grid: Grid


class Site(Struct, frozen=True, eq=False):
    """A tensor in few bits. i: the node that quantises it; of a weight, that reads it.

    tensor: what holds the codes. value: the floating tensor of this graph that they stand for ("": it has none):
    what was quantised, or what a weight becomes. grid: None where it is made while running. readings: of activations.
    codes: of a weight; source: the constant that the graph itself quantises. channel: axis of its output channels;
    summed: axes that its reader sums over.
    """

    i: int
    tensor: str
    role: Role
    form: Form
    grid: Grid | None = None
    value: str = ""
    readings: tuple[Reading, ...] = ()
    codes: Callable[[], Array] | None = None
    shape: tuple[int, ...] = ()
    channel: int | None = None
    summed: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()
    source: str = ""


class Sites:
    """weight: gives an initializer's value. What cannot be read is left out, with a sentence in `unread`."""

    def __init__(self, cut: "GraphCut", weight: Weights) -> None:
        self._cut, self._constants = cut, Constants(cut, weight)
        self.const, self.readers = self._constants.const, self._constants.readers
        self.unread: list[str] = []

    def dequantised(self, site: Site) -> list[str]:
        """The floating tensors that codes are made into, straight."""
        nodes = [self._cut.nodes[i] for i, slot in self.readers[site.tensor] if slot == 0]
        return [node.output[0] for node in nodes if node.op_type in DEQUANTIZE and node.output]

    @cached_property
    def all(self) -> list[Site]:
        """All of them, in the order of their nodes."""
        found: list[Site] = []
        for i, node in enumerate(self._cut.nodes):
            try:
                found += self._of(i, node)
            except BROKEN as error:
                self.unread.append(f"#{i} {node.op_type} {node.name or (node.output or ['?'])[0]}: {error}")
        return found

    def _of(self, i: int, node: onnx.NodeProto) -> Iterator[Site]:
        op = node.op_type
        if op in UNREAD:
            raise ValueError("what it holds in few bits is not read")
        if op in QUANTIZE:
            yield from self._quantize(i, node)
        elif op == DYNAMIC:
            readers = self._reader_nodes(node.output[0])
            yield Site(i, node.output[0], "activation", "dynamic", value=node.input[0], readers=readers)
        elif op in DEQUANTIZE:
            source = self.source(node.input[0])
            if source in self._cut.initializers:
                grid = self._constants.linear(node, source)
                if source == node.input[0] or grid.fits(tuple(self._cut.initializers[source].dims)):
                    yield from self._weight_site(i, node, source, grid, "QDQ", node.output[0])
        elif op in INTEGER:
            yield from self._integer(i, node)
        elif op in BLOCKS:
            found = block_weight(node, self.const)
            channel = channel_axis(op, 1, 2, transposed=False) if op == "GatherBlockQuantized" else 0
            yield Site(i, found.tensor, "weight", "block", found.grid, codes=found.codes, shape=found.shape,
                       channel=channel, readers=(i,))  # fmt: skip
        else:
            yield from self._operator(i, node)

    def source(self, name: str, stops: Container[str] = (), through: Container[str] = VIEWS) -> str:
        """The tensor that codes come from, before operators that hand them on; the first of `stops` on the way.

        through: those operators.
        """
        while name not in stops and name in self._cut.maker:
            node = self._cut.nodes[self._cut.maker[name]]
            if node.op_type not in through:
                break
            name = node.input[0]
        return name

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """How the codes of each activation become values, those of views among them; where one grid is all there is."""
        found = {site.tensor: site.grid for site in self.all if site.role == "activation" and site.grid is not None}
        found = {name: grid for name, grid in found.items() if not grid.many}
        for node in self._cut.nodes:
            if node.op_type in VIEWS and node.input and node.input[0] in found:
                found.update(dict.fromkeys(filter(None, node.output[: None if node.op_type == "Split" else 1]),
                                           found[node.input[0]]))  # fmt: skip
        return found

    def _quantize(self, i: int, node: onnx.NodeProto) -> Iterator[Site]:
        grid, (source, codes) = self._constants.linear(node), (node.input[0], node.output[0])
        if self.const(source) is None:
            yield Site(i, codes, "activation", "QDQ", grid, source, self._readings(codes),
                       readers=self._reader_nodes(codes))  # fmt: skip
            return
        for reader, slot in self.readers[codes]:
            other = self._cut.nodes[reader]
            if slot == 0 and other.op_type in DEQUANTIZE:
                made = self._constants.linear(other)
                found = self._placed(reader, other, codes, made, "QDQ", other.output[0],
                                     lambda: grid.codes(self._constants.known_value(source)))  # fmt: skip
                yield replace(found, source=source)

    def _operator(self, i: int, node: onnx.NodeProto) -> Iterator[Site]:
        known = operator_of(node.op_type, len(node.input))
        if known is None:
            return
        for slots in known.reads:
            name = at(node, slots.codes)
            if name and name not in self._cut.maker and self.const(name) is not None:
                grid = self._constants.grid(name, at(node, slots.scale), at(node, slots.zero), slots.axis)
                if grid is not None:
                    form: Form = "QOperator" if known.makes else "dynamic"
                    yield from self._weight_site(i, node, name, grid, form, "", slots.codes)
        if known.makes is not None:
            scale, zero = (at(node, slot) for slot in known.makes)
            grid = self._constants.grid("", scale, zero, -1)
            if grid is not None:
                codes = node.output[0]
                yield Site(i, codes, "activation", "QOperator", grid, readings=self._readings(codes),
                           readers=self._reader_nodes(codes))  # fmt: skip

    def _integer(self, i: int, node: onnx.NodeProto) -> Iterator[Site]:
        """A product of codes, whose scales are multiplied later: Cast, then Mul with the scales' product."""
        for slot, name in enumerate(node.input[:2]):
            if self.const(name) is None:
                continue
            scale = self._constants.scale_behind(node.output[0], name, slot)
            if scale is None:
                self.unread.append(f"#{i} {node.op_type} {node.name}: the scale of its weight was not found")
                continue
            axis = 0 if node.op_type == "ConvInteger" else -1
            grid = self._constants.grid(name, "", at(node, INTEGER[node.op_type][slot]), axis, scale.reshape(-1))
            assert grid is not None
            yield from self._weight_site(i, node, name, grid, "dynamic", "", slot)

    def _weight_site(
        self, i: int, node: onnx.NodeProto, name: str, grid: Grid, form: Form, value: str, slot: int = 0
    ) -> Iterator[Site]:
        if self.const(name) is not None:
            yield self._placed(i, node, name, grid, form, value, lambda: self._constants.known_value(name), slot)

    def _placed(
        self, i: int, node: onnx.NodeProto, name: str, grid: Grid, form: Form, value: str,
        codes: Callable[[], Array], slot: int = 0,
    ) -> Site:  # fmt: skip
        """A weight's site with what its reader does with it."""
        tensor = self._cut.initializers.get(name)
        shape = tuple(tensor.dims) if tensor is not None else codes().shape
        channel, summed, readers = self._use(i, slot, len(shape))
        if not value:
            readers = (i,)
        role: Role = "bias" if grid.kind == "int32" else "weight"
        if grid.many and not grid.block:
            axis = channel if node.op_type == "QGemm" and channel is not None else grid.axis  # its transB says which
            grid = Grid(grid.kind, grid.scale, grid.zero, axis % max(1, len(shape)))
        return Site(i, name, role, form, grid, value, codes=codes, shape=shape, channel=channel, summed=summed,
                    readers=readers)  # fmt: skip

    def _use(self, i: int, slot: int, rank: int) -> tuple[int | None, tuple[int, ...], tuple[int, ...]]:
        """Output channels of a weight and the axes summed over, as the first product that reads it says; readers."""
        node, moved = self._cut.nodes[i], list(range(rank))
        if node.op_type not in DEQUANTIZE:
            return *self._axes(node, slot, moved), (i,)
        taken = self.readers[node.output[0]]
        readers = tuple(reader for reader, _ in taken)
        for _ in range(_FEW):
            if not taken:
                break
            at, slot = taken[0]
            node = self._cut.nodes[at]
            if node.op_type == "Transpose":
                moved = [moved[axis] for axis in _perm(node, rank)]
            elif node.op_type not in ("Identity", "Cast"):
                return *self._axes(node, slot, moved), readers
            taken = self.readers[node.output[0]]
        return None, (), readers

    def _axes(self, node: onnx.NodeProto, slot: int, moved: list[int]) -> tuple[int | None, tuple[int, ...]]:
        flags = {a.name: a.i for a in node.attribute if a.name in ("transA", "transB")}
        transposed = bool(flags.get("transB" if slot else "transA", 0))
        found = channel_axis(node.op_type, slot, len(moved), transposed=transposed)
        if found is None or not -len(moved) <= found < len(moved):
            return None, ()
        batch = len(moved) - 2 if "MatMul" in node.op_type else 0
        others = [axis for i, axis in enumerate(moved) if i != found and i >= batch]
        states = slot == 0 and "MatMul" in node.op_type  # what stands where activations do is no weight to the kernel
        return moved[found], tuple(others) if node.op_type in SUMMING and not states else ()

    def _readings(self, codes: str) -> tuple[Reading, ...]:
        """Who takes codes as values, straight or behind operators that hand them on."""
        found, waiting, seen = list[Reading](), [codes], {codes}
        while waiting:
            name = waiting.pop()
            for i, slot in self.readers[name]:
                node = self._cut.nodes[i]
                if node.op_type in VIEWS and slot == 0:
                    waiting += [out for out in node.output[:1] if out not in seen]
                    seen.update(node.output[:1])
                elif node.op_type in DEQUANTIZE and slot == 0:
                    found.append(Reading(i, self._constants.linear(node)))
                elif (known := operator_of(node.op_type, len(node.input))) is not None:
                    for slots in known.reads:
                        if slots.codes == slot:
                            grid = self._constants.grid("", at(node, slots.scale), at(node, slots.zero), slots.axis)
                            found += [Reading(i, grid)] if grid is not None else []
        return tuple(found)

    def _reader_nodes(self, name: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(i for i, _ in self.readers[name]))


def _perm(node: onnx.NodeProto, rank: int) -> list[int]:
    given = next((list(a.ints) for a in node.attribute if a.name == "perm"), list(range(rank))[::-1])
    return given if sorted(given) == list(range(rank)) else list(range(rank))
