"""Options about a model's file, of commands that only read and write it too."""

import argparse

from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.tui.cli.options.option import WRITTEN, Group, Option, flag, options_of
from layerwise._tool.tui.cli.parser import Parser

MODEL_TYPES = ("onnx", "engine", "trt-network-script", "frozen", "keras", "ckpt", "uff", "caffe")
PATH = Option("model_file", help="path of the model")
MODEL_TYPE = Option("--model-type", choices=MODEL_TYPES, help="by default told from the file name")
MODEL_FILE = Group("Model", PATH, MODEL_TYPE)
READING = Group(
    "ONNX loading",
    Option("--external-data-dir", "--load-external-data", "--ext", field="model_options.external_data_dir",
           metavar="DIR", script=WRITTEN, help="folder of the external weights, if not the model's"),
    flag("--ignore-external-data", field="model_options.ignore_external_data", script=WRITTEN,
         help="load the structure without weights"),
)  # fmt: skip


HALF = Group(
    "Precision", flag("--fp-to-fp16", field="model_options.fp16", script=WRITTEN, help="convert it to FP16 first")
)


def size(text: str) -> int | None:
    """Bytes; nothing for no text."""
    return parse_size(text) if text else None


EXTERNAL = Group(
    "Saving the model",
    Option("--save-external-data", "--external-data-path", field="model_options.save_external_data", nargs="?",
           const="", metavar="PATH", script=WRITTEN, help="keep its weights in an external file"),
    Option("--external-data-size-threshold", field="model_options.external_data_size_threshold", parse=size,
           metavar="SIZE", script=WRITTEN, help="smaller weights stay inside"),
    flag("--no-save-all-tensors-to-one-file", field="model_options.external_each", script=WRITTEN,
         help="one external file per weight"),
)  # fmt: skip


def add_external_data(parser: Parser, group: argparse._ActionsContainer) -> None:
    """The options about external weights, in the group of a command that saves a model."""
    for option in options_of(EXTERNAL):
        option.add(parser, group)


def add_overwrite(parser: Parser, group: argparse._ActionsContainer) -> None:
    """Add --overwrite, for commands that write where they are told."""
    parser.own(group, "--overwrite", action="store_true", help="replace what is at that path")
