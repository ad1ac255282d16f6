"""Extraction where something must be inferred, run or copied; it loads the onnx package."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.extract.structure import extract, filled, missing
from layerwise._tool.surgery.extract.wire import End
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save_referring
from layerwise._tool.surgery.types.shapes import with_shapes
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec, run_here
from layerwise._tool.tui.cli.surgeon.common import save_model, tell_referring, tell_saved

Ends = list[End] | None


def extract_structure(args: Namespace, log: Log, file: ModelFile, inputs: Ends, outputs: Ends) -> None:
    """Cut the part out and save it."""
    model = Structure.open(file)
    if args.shape_inference:
        model = _inferred(model, log)
    if missing(model, inputs, outputs) and not args.shape_inference:
        log.info("Running shape inference to derive shapes and/or data types for `auto` arguments.")
        model = _inferred(model, log)
    lacking = missing(model, inputs, outputs)
    if lacking or args.force_fallback_shape_inference:
        inputs, outputs = _by_running(args, log, lacking, inputs, outputs)
    _save(args, log, extract(model, inputs, outputs))


def _save(args: Namespace, log: Log, part: Structure) -> None:
    if args.copy_weights or args.save_external_data is not None:
        save_model(args, log, part)
        return
    log.info(f"Saving ONNX model to: {shown(args.output)}")
    files = save_referring(part, Path(args.output), overwrite=True)
    tell_referring(files, log)
    tell_saved(args, log)


def _inferred(model: Structure, log: Log) -> Structure:
    model, warnings = with_shapes(model)
    for text in warnings:
        log.warning(text)
    return model


def _by_running(args: Namespace, log: Log, lacking: Sequence[str], inputs: Ends, outputs: Ends) -> tuple[Ends, Ends]:
    forced = args.force_fallback_shape_inference
    if forced:
        log.info("Forcing fallback shape inference. This will cause dynamic dimensions to become static.")
    else:
        log.warning(
            f"Some tensor shapes or dtypes are missing in the model: {', '.join(shown(n, 80) for n in lacking[:10])}\n"
            "Will run inference to determine shapes. This may cause some dynamic dimensions to become static.\n"
            "To avoid this, please provide metadata on the command-line."
        )
    names = [end.name for end in (*(inputs or ()), *(outputs or ()))]
    known = _run_shapes(args, log, names)
    if not forced:
        known = {name: info for name, info in known.items() if name in lacking}
    return filled(inputs, known), filled(outputs, known, shapes=forced)


def _run_shapes(args: Namespace, log: Log, names: list[str]) -> dict[str, TensorInfo]:
    found: dict[str, TensorInfo] = {}

    def listen(event: Event) -> None:
        if event.get("type") == "row" and event["table"] == "tensors":
            info = msgspec.convert(event["row"], TensorInfo)
            found[info.name] = info
        elif event.get("type") == "warning":
            log.warning(shown(event.get("text") or ""))

    feeds = given(args, [("onnxrt", None)]).feeds
    params = {"path": args.model_file, "names": names, "feeds": msgspec.to_builtins(feeds)}
    params["external_data_dir"] = args.external_data_dir
    job = job_spec("run_shapes", params, args.words, title=("shapes", "of", args.model_file))
    code = run_here(job, listen, log)
    if code:
        raise LayerwiseError("fallback shape inference failed: give shapes and types, as in NAME:[1,3]:float32")
    return found
