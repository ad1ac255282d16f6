"""The README of a repro bundle: the text of a bug report."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.text import shown, shown_lines

_LISTED = 20
_MARKUP = re.compile(r"[\\`*\[\]<>!&|~]")


def readme(
    title: str, nodes: Sequence[str], measured: Mapping[str, Any], command: str, facts: Mapping[str, Any]
) -> str:
    """Return Markdown; names of tensors and nodes are in code blocks, where they cannot act as markup."""
    needs = "tensorrt cuda-python" if "tensorrt" in facts else "onnxruntime"
    lines = [f"# {_plain(title)}", "", "## Show it", "", f"    pip install numpy {needs}", "    python repro.py", ""]
    lines += ["Exit code 1: the fault shows. 0: it does not on this machine. 2: this machine cannot try.", ""]
    if nodes:
        lines += ["## The nodes", "", *(f"    {shown(node, 200)}" for node in nodes[:_LISTED])]
        lines += [f"    … and {len(nodes) - _LISTED} more"] if len(nodes) > _LISTED else []
        lines.append("")
    if measured:
        numbers = (f"    {key}: {shown(str(value), 400)}" for key, value in measured.items())
        lines += ["## Measured where it was found", "", *numbers, ""]
    lines += ["## Files", "", *_files(facts), "", "## Where it was found", "", *_where(facts, command), ""]
    return shown_lines("\n".join(lines)) + "\n"


def _files(facts: Mapping[str, Any]) -> list[str]:
    lines = ["    model.onnx   the model, as small as it was made", "    inputs.npz   its inputs:"]
    lines += [f"        {_described(entry)}" for entry in facts["inputs"][:_LISTED]]
    if facts["outputs"]:
        lines.append("    golden.npz   the outputs that the reference gives:")
        lines += [f"        {_described(entry)}" for entry in facts["outputs"][:_LISTED]]
    return [*lines, "    repro.json   names, options, tolerances, versions", "    repro.py     runs it and compares"]


def _described(entry: Mapping[str, Any]) -> str:
    return f"{entry['key']}: {shown(entry['name'], 120)} {entry['dtype']} {entry['shape']}"


def _where(facts: Mapping[str, Any], command: str) -> list[str]:
    lines = [f"    {package} {version}" for package, version in facts["versions"].items()]
    how = facts.get("tensorrt") or {"providers": facts.get("providers")}
    lines += [f"    {facts['machine']}", *(f"    {key}: {shown(str(value), 400)}" for key, value in how.items())]
    return [*lines, f"    $ {command}"] if command else lines


def _plain(text: str) -> str:
    """Return text for outside code blocks, with Markdown punctuation escaped."""
    return _MARKUP.sub(r"\\\g<0>", shown(text, 200))
