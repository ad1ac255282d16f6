"""A folder of exports, each network by several exporters: torch_NAME.onnx (TorchScript, opset 17), .KIND.onnx, .npz.

`python -m benchmarks.faults aligned --models DIR` compares the forms of each network that it finds there.
"""

import argparse

import numpy as np

from benchmarks.modules.zoo import build, export, names

FORMS = {"torchscript": "", "torchscript13": ".ts13", "dynamo": ".dynamo", "plain": ".plain"}
ATTENTION = {"torchscript": "", **{kind: f".{kind}" for kind in ("sdpa17", "sdpa18", "sdpa23")}}


def main(given: argparse.Namespace) -> bool:
    """Write them; whether all could be written."""
    good = True
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only or names(further=given.further):
        _, inputs, keys = build(name)
        np.savez(
            given.out / f"torch_{name}.npz", **{key: value.numpy() for key, value in zip(keys, inputs, strict=True)}
        )
        for kind, form in (ATTENTION if given.attention else FORMS).items():
            try:
                export(name, kind, given.out / f"torch_{name}{form}.onnx")
            except Exception as error:  # whatever an exporter says of a network that it does not take
                good = False
                print(f"{name}: {kind}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return good
