"""What an exported program's file (.pt2) may hold: nothing that runs code when torch reads it.

torch.export.load unpickles weights, constants and sample inputs that are marked so, evaluates the text of symbolic
sizes and looks up operators by any path under `torch`. So the whole file is looked through first.
"""

import ast
import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_OPERATORS = re.compile(
    r"torch\.ops\.(aten|prims|higher_order|quantized_decomposed|torchvision|torchao)"
    r"\.(?!from_file)(__(and|or|xor|lshift|rshift)__|(?!__)\w+)(\.(?!__)\w+)?"
)
_PLAIN = re.compile(
    r"_operator\.(add|sub|mul|truediv|floordiv|mod|pow|neg|abs|eq|ne|lt|le|gt|ge|and_|or_|xor|not_|inv|getitem|pos"
    r"|lshift|rshift|is_)|math\.[a-z]\w*|torch\.sym_\w+|torch\._sym_\w+"
)
_SIZE_FUNCTIONS = (
    "Symbol Add Mul Pow Max Min Mod Eq Ne Lt Le Gt Ge And Or Not Xor Abs Rational Integer Float floor ceiling "
    "Piecewise ExprCondPair Equality Unequality LessThan StrictLessThan GreaterThan StrictGreaterThan Infinity "
    "NegativeInfinity true false oo int_oo FloorDiv ModularIndexing Where PythonMod CleanDiv CeilToInt FloorToInt "
    "CeilDiv LShift RShift PowByNatural FloatPow FloatTrueDiv IntTrueDiv IsNonOverlappingAndDenseIndicator "
    "TruncToFloat TruncToInt RoundToInt RoundDecimal ToFloat Identity"
)
_SIZES = frozenset(_SIZE_FUNCTIONS.split())
_SYMBOL = re.compile(r"[a-z]{1,4}\d{1,6}")
_SIZE_PARTS = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call, ast.Name, ast.Load, ast.Constant,
    ast.Tuple, ast.keyword, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_MODELS, _SAMPLES = "models/", "data/sample_inputs/"
_CONFIGS = ("data/weights/", "data/constants/")


class Refused(Exception):
    """Why a file is not read."""


def check_archive(
    path: object, names: list[str], read: Callable[[str], bytes], sample: Callable[[bytes], None]
) -> None:
    """BadFile unless an archive holds weights and constants as raw bytes alone, and a graph that only names operators.

    names: its records; read: gives one. sample: raises ValueError for sample inputs that are not tensors alone.
    """
    try:
        for name in names:
            _check_record(name, read, sample)
    except Refused as error:
        raise BadFile(path, f"{error}: nothing is unpickled or evaluated here. Save it anew with torch.export.save, or "
                            "make the module in a script (--torch FILE.py:function)") from None  # fmt: skip
    except (ValueError, RecursionError) as error:
        raise BadFile(path, f"is not a program that torch.export.save wrote: {in_words(error, 200)}") from None


def _check_record(name: str, read: Callable[[str], bytes], sample: Callable[[bytes], None]) -> None:
    if name.startswith(_MODELS):
        _check_graph(read(name))
    elif name.startswith(_CONFIGS) and name.endswith(".json"):
        _check_payloads(json.loads(read(name)))
    elif name.startswith(_CONFIGS) and name.endswith(".pt"):
        raise Refused(f"{shown(name, 80)} is a pickle (an older format)")
    elif name.startswith(_SAMPLES):
        data = read(name)
        if data:
            try:
                sample(data)
            except ValueError as error:
                raise Refused(f"its sample inputs are more than tensors ({in_words(error, 200)})") from None
    elif name.startswith("data/aotinductor/"):
        raise Refused("it holds compiled code (AOTInductor)")


def _check_payloads(config: Any) -> None:
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise ValueError("a list of weights is broken")
    for name, entry in config["config"].items():
        place = entry.get("path_name") if isinstance(entry, dict) else None
        raw = isinstance(place, str) and place.startswith(("weight_", "tensor_")) and entry.get("use_pickle") is False
        if not raw:
            raise Refused(f"{shown(str(name), 80)} is stored as a pickle")
        if "/" in str(place):
            raise ValueError("a weight lies outside the archive")


def _check_graph(data: bytes) -> None:
    """Operators, names and sizes anywhere in a serialised graph, those of its subgraphs too."""
    if b"__enum__" in data or b"default_factory" in data:
        raise Refused("its inputs or outputs are of a type that a module has to be imported for")
    for key, value in _fields(json.loads(data)):
        if key == "target" and isinstance(value, str):
            _check_target(value)
        elif key == "expr_str":
            _check_size(value)
        elif key == "as_name":
            _check_name(value)
        elif key.startswith("as_") and isinstance(value, dict) and "name" in value:
            _check_name(value["name"])
        elif key in ("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"):
            for name in value or ():
                _check_name(name)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, Mapping):
            yield from part.items()
            todo += part.values()
        elif isinstance(part, list):
            todo += part


def _check_target(text: str) -> None:
    if text and not (_OPERATORS.fullmatch(text) or _PLAIN.fullmatch(text)):
        raise Refused(f"it calls {shown(text, 80)}, which is no operator")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or (name and not name.isidentifier()) or keyword.iskeyword(name):
        raise Refused(f"a tensor is called {shown(str(name), 80)}")


def _check_size(text: Any) -> None:
    """sympy evaluates a symbolic size: only symbols, numbers, arithmetic and the functions of sizes may be in it."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, TypeError, ValueError, MemoryError):
        raise Refused(f"a size is {shown(str(text), 80)}") from None
    if not all(isinstance(part, _SIZE_PARTS) and _known(part) for part in ast.walk(tree)):
        raise Refused(f"a size is {shown(text, 80)}")


def _known(part: ast.AST) -> bool:
    if isinstance(part, ast.Name):
        return part.id in _SIZES or bool(_SYMBOL.fullmatch(part.id))
    if isinstance(part, ast.Constant):
        return isinstance(part.value, int | float) or (
            isinstance(part.value, str) and bool(_SYMBOL.fullmatch(part.value))
        )
    return True
