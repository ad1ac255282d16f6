"""The rows of a locate job's own tables and its result, as the job's journal (schema version 1) holds them.

Its layers are rows of table `layers` as `debugtools.compare.rows` has them.
"""

from msgspec import UNSET, Struct, UnsetType

from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult
from layerwise._tool.debugtools.compare.result import Saturated, TruthResult
from layerwise._tool.debugtools.compare.rows import Truth
from layerwise._tool.surgery.origin.origin import SourceLine


class NodeRow(Struct, frozen=True):
    """A node: its position in the model's order, its name (or what stands for it), its operator."""

    i: int
    node: str
    op: str


class Inside(Struct, frozen=True):
    """What was found in the body of a control-flow node. trip: counted from 0; note: why nothing was found."""

    body: str = ""
    trip: int = 0
    suspects: "list[SuspectRow]" = []
    note: str = ""


class SuspectRow(Struct, frozen=True, kw_only=True):
    """A row of table `suspects`: a node that is suspected, worst first.

    outputs: its tensors that speak against it, tensor the worst of them. Relative L2 errors: local, of the node alone
    on the reference's inputs (None: it failed), and accumulated, of the whole run; local_abs: the largest |a - b|;
    times: local over what rounding explains (None: rounding explains nothing of it, or there is no number).
    amplification: error out over error in. region: the nodes that make the tensor from tensors that both sides have,
    where sides are aligned with those before them that rearrange these unseen; reference: then, those of the
    reference; of a tensor in few bits, what makes its original, or reads it if it is a weight.
    truth: of the tensor, where it was asked for. module, source: where the node comes from, as in a LayerRow.
    """

    i: int = -1
    node: str = ""
    op: str = ""
    outputs: list[str] = []
    tensor: str = ""
    iteration: int = 0
    local: float | None = None
    local_abs: int | float | None = None
    times: float | None = None
    accumulated: float | None = None
    amplification: float | None = None
    diagnosis: str = ""
    evidence: str = ""
    region: list[NodeRow] = []
    reference: list[NodeRow] = []
    inside: Inside | UnsetType = UNSET
    truth: Truth | UnsetType = UNSET
    module: tuple[str, ...] | UnsetType = UNSET
    source: SourceLine | UnsetType = UNSET


class LocateResult(Struct, frozen=True, kw_only=True):
    """The result of a locate job. passed: something was found, or all agrees; level: how far most nodes are off, 0 if
    few are.

    n_suspects: all, of which `suspects` are the worst. tensors: how many were looked at. stopped: where the suspect's
    own run ended. outputs_differ: whether any output fails. peak_memory: bytes. seconds: it took.
    conclusion: what was found, in a sentence. quantised: of a suspect whose reference is its float original.
    saturated: where kernels of a side saturate, the worst tensor.
    """

    passed: bool = False
    suspects: list[SuspectRow] = []
    n_suspects: int = 0
    tensors: int = 0
    stopped: str = ""
    outputs_differ: bool = False
    summary: str = ""
    conclusion: str = ""
    level: float = 0.0
    peak_memory: int = 0
    seconds: float = 0.0
    runners: list[str] = []
    truth: TruthResult | None = None
    quantised: QuantisedResult | None = None
    saturated: Saturated | None = None
