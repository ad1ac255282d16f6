"""Searches nodes. A query is a list of terms that must all match; quotes group words; case is ignored.

text          in the node's name, its operator or the name of one of its outputs
name:text     in the node's name
op:text       in the operator type
dtype:text    in the type of one of its outputs
module:text   in the path of its module with a point behind it, so that `module:layer.1.` is not layer 10
!term         the term does not match (a lone ! is text)
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.columns import Columns, Strings

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph.modules import Modules

Mask = NDArray[np.bool_]
_TERM = re.compile(r'(!?)(?:(name|op|dtype|module):)?("[^"]*"|\S+)?', re.IGNORECASE)


def search(
    columns: Columns, names: Strings, query: str, modules: "Callable[[], Modules | None]" = lambda: None
) -> NDArray[np.int32]:
    """Return the numbers of the nodes that match all terms, ascending. modules: asked for if a term is about them."""
    mask = np.ones(columns["node_name"].size, np.bool_)
    for negated, field, text in terms(query):
        found = _in_modules(modules(), mask, text) if field == "module" else _matches(columns, names, field, text)
        mask &= ~found if negated else found
    return np.flatnonzero(mask).astype(np.int32)


def terms(query: str) -> list[tuple[bool, str, str]]:
    """Return (negated, field or "", text) for each term. A field without text matches everything."""
    found = []
    for match in _TERM.finditer(query):
        negation, field, text = match.groups()
        if text is None and negation and field is None:
            text, negation = negation, ""
        if text is None:
            continue
        found.append((bool(negation), (field or "").lower(), text.strip('"')))
    return found


def _matches(columns: Columns, names: Strings, field: str, text: str) -> Mask:
    if field == "op":
        return _by_value(columns["node_op"], names, text)
    if field == "dtype":
        return _any_output(columns, _by_value(columns["tensor_dtype"], names, text))
    hits = names.containing(text)
    found: Mask = hits[columns["node_name"]]
    if field == "name":
        return found
    return found | hits[columns["node_op"]] | _any_output(columns, hits[columns["tensor_name"]])


def _in_modules(modules: "Modules | None", mask: Mask, text: str) -> Mask:
    if not text:
        return np.ones_like(mask)
    return np.zeros_like(mask) if modules is None else modules.nodes_in(text.lower())


def _by_value(column: NDArray[Any], names: Strings, text: str) -> Mask:
    """Return a mask of rows whose string, out of few distinct ones, contains `text`."""
    wanted = [n for n in np.unique(column).tolist() if text.lower() in names[n].lower()]
    return np.isin(column, wanted)


def _any_output(columns: Columns, tensors: Mask) -> Mask:
    """Return a mask of nodes with an output in `tensors`."""
    outputs, at = columns["outputs"], columns["outputs_at"]
    hits = tensors[outputs] & (outputs >= 0) if tensors.size else np.zeros(outputs.size, np.bool_)
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(hits)])
    return np.asarray(total[at[1:]] > total[at[:-1]])
