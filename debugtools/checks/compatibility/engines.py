"""Whether TensorRT supports a model: checks nodes with its parser, then builds an engine and runs it once."""

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.inspect.support import Refusal, Support
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.checks.compatibility.operators import Operators
from layerwise._tool.debugtools.checks.compatibility.probe import Code, OperatorRow, Subject, Verdict, merged

_NO_CODE = ("No importer registered", "Plugin not found")


def probe_engine(spec: RunnerSpec, subject: Subject) -> Verdict:
    """Probe TensorRT. If the parser supports every node but the build fails, the reason is that of the build."""
    model = Loadable(data=subject.data, folder=subject.folder)
    try:
        support = Support(tensorrt(), Messages(), trt_options(spec.options).network)
    except (MissingDependency, BadFile) as error:
        return Verdict(takes=False, available=False, reason=str(error))
    refusals = support.refusals(model)
    rows = _rows(subject.operators, refusals)
    if refusals:
        return Verdict(takes=False, reason=_told(refusals), operators=rows)
    try:
        with open_runner(spec, model, name="backend") as runner:
            if subject.feed is not None:
                runner.infer(subject.feed)
    except MissingDependency as error:
        return Verdict(takes=False, available=False, reason=str(error))
    except LayerwiseError as error:
        return Verdict(takes=False, reason=str(error), operators=rows)
    return Verdict(takes=True, ran=subject.feed is not None, operators=rows)


def _told(refusals: list[Refusal]) -> str:
    first = refusals[0]
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    return f"the parser refuses node {first.name or first.node} ({first.op}): {first.reason}{more}"


def _rows(operators: Operators, refusals: list[Refusal]) -> list[OperatorRow]:
    reasons = {refusal.node: refusal.reason for refusal in reversed(refusals) if not refusal.stack}
    found = []
    for group in operators.groups:
        taken = [at for at in group.positions if at not in reasons]
        if taken:
            found.append(OperatorRow(group.signature, Code.TAKEN, len(taken)))
        found += [
            OperatorRow(group.signature, _code(reasons[at]), 1, operators.names[at], reasons[at])
            for at in group.positions
            if at in reasons
        ]
    return merged(found)


def _code(reason: str) -> Code:
    return Code.NO_KERNEL if any(text in reason for text in _NO_CODE) else Code.REFUSED
