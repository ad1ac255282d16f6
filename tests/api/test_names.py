"""Every public name of Polygraphy's documented modules is here, at the same path, with the same parameters.

What Polygraphy offers is read from the package that is installed. Exceptions are in the page, each with its reason.
"""

import inspect
import re
from pathlib import Path

import pytest
from support.api_names import Name, modules, names, parameters

PAGE = Path(__file__).parents[2] / "docs/coming-from-polygraphy.md"
ALL = list(names("polygraphy"))


def excepted() -> dict[str, str]:
    """Names that the page's table says are missing or differ -> the reason."""
    rows = re.findall(r"^\| `([\w.*]+)` \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    return dict(rows)


def is_excepted(name: object) -> bool:
    text = str(name)
    return any(text == each or (each.endswith("*") and text.startswith(each[:-1])) for each in excepted())


def different(theirs: list[inspect.Parameter], ours: list[inspect.Parameter]) -> str:
    """What a call written for their parameters meets in ours; "" if nothing. Ours may take more, after theirs."""
    for place, wanted in enumerate(theirs):
        if place >= len(ours):
            return f"lacks {wanted}"
        found = ours[place]
        if (found.name, found.kind) != (wanted.name, wanted.kind):
            return f"has {found} in place of {wanted}"
        simple = wanted.default is None or isinstance(wanted.default, bool | int | float | str)
        if (found.default is inspect.Parameter.empty) != (wanted.default is inspect.Parameter.empty):
            return f"has {found} in place of {wanted}"
        if simple and wanted.default is not inspect.Parameter.empty and found.default != wanted.default:
            return f"has {found} in place of {wanted}"
    needed = [
        p for p in ours[len(theirs) :] if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return f"needs {needed[0]} too" if needed else ""


def test_all_is_read() -> None:
    paths = set(modules("polygraphy"))
    assert {"backend.onnx.loader", "backend.trt.util", "comparator.struct", "mod.importer", "util.array"} <= paths
    assert len(paths) > 60 and len(ALL) > 900
    assert {Name("backend.onnx", "fold_constants"), Name("comparator", "RunResults", "load_streaming")} <= set(ALL)


@pytest.mark.parametrize("module", sorted(set(modules("polygraphy"))))
def test_a_module_has_all_names_with_their_parameters(module: str) -> None:
    wrong = []
    for name in (each for each in ALL if each.module == module and not is_excepted(each)):
        try:
            found = name.of("layerwise")
        except (ImportError, AttributeError) as error:
            wrong.append(f"{name}: {error}")
            continue
        theirs, ours = parameters(name.of("polygraphy")), parameters(found)
        if theirs is not None:
            said = "is not callable" if ours is None else different(theirs, ours)
            wrong += [f"{name} {said}"] if said else []
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_names_and_have_reasons() -> None:
    known = {str(name) for name in ALL}
    for name, reason in excepted().items():
        assert len(reason) > 20, name
        assert any(each == name or (name.endswith("*") and each.startswith(name[:-1])) for each in known), name
    assert sum(is_excepted(name) for name in ALL) < 40
