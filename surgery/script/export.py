"""Writes edits as a plain onnx-graphsurgeon script that makes the same model, to continue in Python."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import count
from pathlib import Path

import numpy as np

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.folders import written_together
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits import Edit
from layerwise._tool.surgery.model.structure import Graph, Structure, function_name
from layerwise._tool.surgery.saving.streamed import nbytes
from layerwise._tool.surgery.script.delta import ScriptDelta, unsupported
from layerwise._tool.surgery.script.literals import Stored, value_arguments
from layerwise._tool.surgery.types.incremental import settled, types_of
from layerwise._tool.surgery.wire.pieces import ONE_FILE_LIMIT

_HEAD = '''"""Edits of a model with onnx-graphsurgeon."""
# {usage}
import sys
{imports}
import numpy as np
import onnx
import onnx_graphsurgeon as gs

'''
_FOOT = """
exported = gs.export_onnx(graph, do_type_check=False)
exported.ir_version = {ir_version}
{metadata}onnx.save(exported, sys.argv[-1]{external})
"""
_OUTSIDE = ", save_as_external_data=True, location=sys.argv[-1].rsplit('/', 1)[-1] + '.data'"


def export_script(before: Structure, steps: Sequence[tuple[Edit, Structure]], path: Path, *, is_new: bool) -> None:
    """Write a script that turns `before` into the result of the last of `steps` (edits with their results).

    Tensors too large for text go to a .npz file next to it. is_new: the script starts without a file.
    LayerwiseError for what graphsurgeon cannot represent; OSError.
    """
    stored, serial = Stored(before.folder), count(1)
    lines: list[str] = []
    structure = before
    for edit, after in steps:
        found, told = _step(structure, after, stored, serial), shown(edit.describe())
        lines += ["", f"# {told}", *found] if found else ["", f"# {told}: nothing to do"]
        structure = after
    lines += _declarations(before, structure)
    text = _head(path, stored, is_new) + _helpers(lines) + _opening(before, path, stored, is_new)
    text += "\n".join([*lines, ""]) + _foot(structure)
    with written_together(path) as new:
        if stored.arrays:
            np.savez(new / path.with_suffix(".npz").name, allow_pickle=False, **stored.arrays)
        atomic_write(new / path.name, text)


def _step(before: Structure, after: Structure, stored: Stored, serial: Iterator[int]) -> list[str]:
    lines = ScriptDelta(before, after, "graph", stored, serial).lines()
    if before.opsets != after.opsets:
        versions = ", ".join(f"onnx.helper.make_opsetid({d!r}, {v})" for d, v in after.opsets.items())
        lines += [f"graph.opset = {after.opsets.get('', after.opsets.get('ai.onnx'))}"]
        lines += [f"graph.import_domains = [{versions}]"]
    return lines + _functions(before, after, stored, serial)


def _functions(before: Structure, after: Structure, stored: Stored, serial: Iterator[int]) -> list[str]:
    old = {function_name(function): function for function in before.functions}
    new = {function_name(function): function for function in after.functions}
    lines = []
    for name, function in new.items():
        if name not in old:
            raise unsupported("the new function", name)
        if old[name] is not function and old[name] != function:
            variable = f"function_{next(serial)}"
            place = list(new).index(name) if old.keys() == new.keys() else list(old).index(name)
            lines.append(f"{variable} = graph.functions[{place}]")
            pair = Graph.of_function(old[name]), Graph.of_function(function)
            lines += ScriptDelta(*pair, variable, stored, serial).lines()
    if old.keys() - new.keys():
        places = [list(old).index(name) for name in new]
        lines.append(f"graph.functions = [graph.functions[i] for i in {places}]")
    return lines


def _declarations(before: Structure, after: Structure) -> list[str]:
    """Return types and shapes that are no longer valid, or that the edits declared."""
    final = settled(before, after)
    changed = [v for v in final.outputs if (old := after.value(v.name)) is None or old != v]
    changed += [v for name, v in final.values.items() if before.values.get(name) != v]
    gone = [name for name in after.values if name not in final.values and name in types_of(after)]
    lines = [f"declare(graph, {v.name!r}, {value_arguments(v)})" for v in changed]
    lines += [f"declare(graph, {name!r}, None, None)" for name in gone]
    return ["", "# What is declared of tensors that the edits changed", *lines] if lines else []


def _head(path: Path, stored: Stored, is_new: bool) -> str:
    usage = shell_line(["python", path.name, *([] if is_new else ["MODEL.onnx"]), "NEW.onnx"])
    return _HEAD.format(usage=usage, imports="from pathlib import Path\n" if stored.arrays else "")


def _helpers(lines: Sequence[str]) -> str:
    """Return the helpers that the lines use, transitively."""
    blocks = files("layerwise._tool.surgery.script").joinpath("helpers.txt").read_text().split("\n\n\n")
    named = {block.split("(", 1)[0].removeprefix("def "): block for block in blocks[1:]}
    used: set[str] = set()
    waiting = ["\n".join(lines)]
    while waiting:
        words = set(re.findall(r"\b(\w+)\(", waiting.pop()))
        for name in sorted((words & named.keys()) - used):
            used.add(name)
            waiting.append(named[name])
    return "\n\n".join([blocks[0], *("\n" + block.strip() for name, block in named.items() if name in used)]) + "\n\n\n"


def _opening(before: Structure, path: Path, stored: Stored, is_new: bool) -> str:
    lines = []
    if stored.arrays:
        lines.append(f"values = np.load(Path(__file__).with_name({path.with_suffix('.npz').name!r}))")
    if is_new:
        opset = before.opsets.get("", 1)
        lines.append(f"graph = gs.Graph(opset={opset}, name={before.frame.name!r})")
    else:
        lines.append("graph = gs.import_onnx(onnx.load(sys.argv[1]))")
    return "\n".join([*lines, ""])


def _foot(structure: Structure) -> str:
    return _FOOT.format(ir_version=structure.ir_version, metadata=_metadata(structure), external=_external(structure))


def _external(structure: Structure) -> str:
    """Return how to save a model that does not fit into one file."""
    return _OUTSIDE if sum(map(nbytes, structure.initializers.values())) > ONE_FILE_LIMIT else ""


def _metadata(structure: Structure) -> str:
    return "".join(f"exported.metadata_props.add(key={k!r}, value={v!r})\n" for k, v in structure.metadata.items())
