"""`locate` on damaged quantised models against their float originals: is the damage what it names first?

Each model is quantised in several forms (tests/support/quantised.py; `--forms` takes some): onnxruntime's Q/DQ and
QOperator in several types, dynamic, MatMulNBits, NF4, Q/DQ as NVIDIA Model Optimizer writes it, FP8. Of each form the
clean model must accuse nobody, and a plant that moves the outputs further than quantising did must be named first:
its scale's or its codes' node, or the product that reads them. `layerwise run --mark-all` is asked as well: it must
pass the clean model and fail the plant. Where kernels for uint8 times int8 saturate on this CPU (x86-64 without VNNI),
the quantised models run in a way that avoids it, or else the clean ones are wrong themselves. `--count`: plants a form.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from support.faults import running
from support.faults.corpus import Clean, Corpus
from support.faults.ours import run_action
from support.faults.quantised import KINDS, Damage, Planter
from support.quantised import FORMS

from benchmarks.faults.tables import Options, by, corpora, share, table, work_folder
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.onnxrt.saturation import SETTING, precise, saturates
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

_COUNTS = 1.1  # times the error of the clean quantised model


def main(options: Options) -> bool:
    """Measure and print; whether no clean model is accused and 95 % of the plants are found."""
    with table(options) as rows, work_folder() as folder:
        for corpus in corpora(options):
            save_feeds(folder / "inputs.json", [corpus.clean.feed])
            onnx.save(corpus.clean.model, folder / "float.onnx")
            for row in measured(corpus, folder, options.count, options.forms or tuple(FORMS)):
                mark = ("" if row["first"] else "MISSED ") + ("" if row["run"] else "RUN WRONG ")
                rows.add(row, f"{mark}{row['model']:14} {row['form']:10} {row['kind']:16} {row['told']}")
        plants = [row for row in rows.rows if row["kind"] != "clean"]
        clean = [row for row in rows.rows if row["kind"] == "clean"]
        if not plants or not clean:
            return False
        for key in ("model", "form", "kind"):
            parts = ", ".join(f"{name} {share(found, 'first')}" for name, found in by(plants, key).items())
            print(f"by {key}: {parts}")
        accused = sum(not row["first"] for row in clean)
        print(f"clean models accused: {accused} of {len(clean)}; damage located first: {share(plants, 'first')}")
        print(f"run: clean models passed {share(clean, 'run')}, damage failed {share(plants, 'run')}")
        good = sum(row["first"] for row in plants) >= 0.95 * len(plants)
        return good and not accused and all(row["run"] for row in rows.rows)


def measured(corpus: Corpus, folder: Path, count: int, forms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each clean form of a model and for each plant in it."""
    clean = corpus.clean
    for form, make in ((form, FORMS[form]) for form in forms):
        try:
            model = make(clean.model, clean.feed)
            error = error_of(clean, model)
        except Exception as problem:  # whatever onnxruntime says of a model that it does not quantise or run
            print(f"{clean.name}: no {form}: {str(problem)[:120]}")
            continue
        if not any("Quantize" in node.op_type or "Integer" in node.op_type or node.op_type == "MatMulBnb4"
                   or "NBits" in node.op_type
                   or "QLinear" in node.op_type for node in model.graph.node):  # fmt: skip
            continue
        onnx.save(model, folder / "suspect.onnx")
        found = located(folder)["suspects"]
        passed, said = ran(folder)
        told = f"off by {error:.2g}; " + (_told(found[0]) if found else "nobody accused") + said
        yield {"model": clean.name, "form": form, "kind": "clean", "first": not found, "run": passed, "told": told}
        for damage in counting(clean, model, error, corpus.seed, count):
            onnx.save(damage.model, folder / "suspect.onnx")
            found = located(folder)["suspects"]
            first = bool(found) and names(found[0], damage)
            passed, said = ran(folder)
            told = f"{damage.detail}; named {_told(found[0]) if found else 'nobody'}" + said
            yield {"model": clean.name, "form": form, "kind": damage.kind, "first": first, "run": not passed,
                   "told": told}  # fmt: skip


def counting(clean: Clean, model: onnx.ModelProto, error: float, seed: int, count: int) -> Iterator[Damage]:
    """Plants of all kinds in turn that move the outputs further than quantising did."""
    planter = Planter(model, seed)
    plants = {kind: planter.plants(kind) for kind in KINDS}
    given = 0
    while plants and given < count:
        for kind in list(plants):
            damage = next((each for each in plants[kind] if _moves(clean, each.model, error)), None)
            if damage is None:
                del plants[kind]
            elif given < count:
                given += 1
                yield damage


def _moves(clean: Clean, model: onnx.ModelProto, error: float) -> bool:
    try:
        return not error_of(clean, model) <= _COUNTS * error
    except Exception:  # it does not run any more: another kind of fault
        return False


def error_of(clean: Clean, model: onnx.ModelProto) -> float:
    """The largest relative L2 error of the outputs."""
    found = running.run(model, clean.feed, settings={SETTING: "1"})
    return max(
        float(np.linalg.norm((found[name] - array).astype(float)) / max(np.linalg.norm(array.astype(float)), 1e-30))
        for name, array in clean.outputs.items()
    )


def located(folder: Path) -> dict[str, Any]:
    """The result of locating the suspect against the float model."""
    return run_action("locate", LocateSpec(compare=_spec(folder)), "suspects").result


def ran(folder: Path) -> tuple[bool, str]:
    """Whether `run --mark-all` passes the suspect against the float model, and what it says."""
    spec = msgspec.structs.replace(_spec(folder), marks=MarkSpec(everything=True))
    result = run_action("compare", spec, "layers").result
    held = result["quantised"] or {}
    rest = f", cost {held['cost']:.2g}, moved {held['moved']:.2g}" if held.get("cost") else ""
    return result["passed"], f"; run {'passes' if result['passed'] else 'fails'}{rest}, {result['n_failed']} rows"


def _spec(folder: Path) -> CompareSpec:
    suspect, reference = (
        RunnerSpec(kind="onnxrt", model=str(folder / name)) for name in ("suspect.onnx", "float.onnx")
    )
    return CompareSpec(
        model=suspect.model, runners=[precise(suspect) if saturates() else suspect, reference],
        feeds=FeedSpec(files=[str(folder / "inputs.json")]),
    )  # fmt: skip


def names(suspect: dict[str, Any], damage: Damage) -> bool:
    """Whether a suspect is where the damage is."""
    return suspect["node"] in damage.names


def _told(suspect: dict[str, Any]) -> str:
    return f"{suspect['node']} ({suspect['diagnosis']}): {suspect['evidence'][:160]}"
