"""`layerwise template trt-network|trt-config`: scripts over TensorRT's own API, to be finished by hand."""

from argparse import Namespace
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.config import reduces
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.options.common import MARKING, MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.options.trt import TENSORFLOW, TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import given, refuse_other_frameworks, wants_engine
from layerwise._tool.tui.cli.script.generate import ScriptText
from layerwise._tool.tui.cli.script.text import Code
from layerwise._tool.tui.cli.script.trt import remarks
from layerwise._tool.tui.cli.template.command import add_output, save_script

_NETWORK = """

@func.extend({loader})
def load_network(builder, network{parser}):
    \"\"\"Change the network here, by TensorRT's own API. Nothing needs to be returned.\"\"\"
    # Add layers, and make what they give an output:
    #
    # {made}
    # network.mark_output(made.get_output(0))
    #
    # Or walk over those that are there:
    #
    # for index in range(network.num_layers):
    #     print(network.get_layer(index).name, network.get_layer(index).type)
"""
_GIVEN = "made = network.add_activation(network.get_output(0), tensorrt.ActivationType.RELU)"
_EMPTY = (
    'made = network.add_activation(network.add_input("x", tensorrt.float32, (1, 16)), tensorrt.ActivationType.RELU)'
)
_CONFIG = """

@func.extend({loader})
def load_config(builder, network, config):
    \"\"\"Change the builder config here, by TensorRT's own API. Nothing needs to be returned.\"\"\"
    # config.set_flag(tensorrt.BuilderFlag.DISABLE_TIMING_CACHE)
"""


def fill_trt_network(parser: Parser) -> None:
    parser.usage = "%(prog)s [MODEL.onnx] -o SCRIPT.py [OPTIONS]"
    parser.epilog = "Then: layerwise run SCRIPT.py --trt, or layerwise convert SCRIPT.py -o M.engine. '-o -' prints it."
    _fill(parser)


def fill_trt_config(parser: Parser) -> None:
    parser.usage = "%(prog)s [MODEL.onnx] -o SCRIPT.py [OPTIONS]"
    parser.epilog = "Then: layerwise run MODEL.onnx --trt --trt-config-script SCRIPT.py. '-o -' prints it."
    _fill(parser)


def _fill(parser: Parser) -> None:
    add(parser, MODEL)
    add_output(parser)
    add(parser, MARKING, DATA, ONNX, TRT)
    parser.add_argument("--tf32", action="store_true", help="allow TF32")
    add(parser, TENSORFLOW)


def run_trt_network(args: Namespace, log: Log) -> int:
    """Write the script that makes a network."""
    spec, wanted = _asked(args)
    body, path = ScriptText(spec), args.model_file
    if path is None:
        loader, parser, made = body.trt(path).empty(wanted.network), "", _EMPTY
    else:
        model = body.model(path)
        loader = body.trt(path).network(wanted.network, Code(model), changed=model != repr(path))
        parser, made = ", parser", _GIVEN
    text = _head(args, ["A network for `layerwise run SCRIPT.py --trt`."], body)
    save_script(args, text + _NETWORK.format(loader=loader, parser=parser, made=made))
    return 0


def run_trt_config(args: Namespace, log: Log) -> int:
    """Write the script that makes a builder config."""
    spec, wanted = _asked(args)
    body = ScriptText(spec)
    loader = body.trt(args.model_file).config(wanted, spec.feeds)
    told = ["A builder config for `layerwise run MODEL.onnx --trt --trt-config-script SCRIPT.py`."]
    told += remarks(wanted, FeedSpec())
    if reduces(wanted):
        told.append("TensorRT 11 has no flags for precision: there, give it to `run` or `convert`, without this file.")
    save_script(args, _head(args, told, body) + _CONFIG.format(loader=loader))
    return 0


def _asked(args: Namespace) -> tuple[CompareSpec, TrtOptions]:
    if wants_engine(args):
        raise UsageError(f"{shown(args.model_file or '')}: the script starts from an ONNX model, or from none")
    refuse_other_frameworks(args)
    if args.model_file is not None and not Path(args.model_file).is_file():
        raise UsageError(f"{shown(args.model_file)}: there is no such file")
    named = Namespace(**{**vars(args), "model_file": args.model_file or "model.onnx"})
    return given(named, [("trt", None)]), trt_options(args)


def _head(args: Namespace, told: list[str], body: ScriptText) -> str:
    body.use("", "tensorrt")
    body.use("layerwise", "func")
    made_by = f"Made by: {args.command}"
    lines = ["#!/usr/bin/env python3", *(f"# {shown(line)}" for line in (made_by, *told)), ""]
    return "\n".join([*lines, *body.own_imports(), ""])
