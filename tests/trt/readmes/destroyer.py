"""The extension module of the example dev/02: Reshape nodes that do nothing become Identity, which is all it runs."""

import time

from layerwise import mod, util
from layerwise.backend.base import BaseLoader, BaseRunner
from layerwise.common import TensorMetadata
from layerwise.logger import G_LOGGER
from layerwise.tools.args import OnnxLoadArgs
from layerwise.tools.args import util as args_util
from layerwise.tools.args.base import BaseArgs, BaseRunnerArgs
from layerwise.tools.script import make_invocable

gs = mod.lazy_import("onnx_graphsurgeon")


@mod.export(funcify=True)
class Destroy(BaseLoader):
    def __init__(self, graph, rename=None):
        self._graph, self.rename = graph, util.default(rename, False)

    @util.check_called_by("__call__")
    def call_impl(self):
        graph, _ = util.invoke_if_callable(self._graph)
        for node in graph.nodes:
            shape = node.inputs[1] if node.op == "Reshape" else None
            if isinstance(shape, gs.Constant) and list(shape.values) == list(node.inputs[0].shape):
                node.op = "Identity"
                node.attrs.clear()
                del node.inputs[1]
                if self.rename:
                    node.name += "_destroyed"
                    G_LOGGER.info(f"Renamed Identity node to: {node.name}")
        return graph.cleanup()


@mod.export()
class Copier(BaseRunner):
    def __init__(self, graph, name=None, speed=None):
        super().__init__(name=name, prefix="copier")
        self._graph, self.speed = graph, util.default(speed, "fast")
        if self.speed not in ("slow", "medium", "fast"):
            G_LOGGER.critical(f"Invalid speed: {self.speed}")

    @util.check_called_by("activate")
    def activate_impl(self):
        self.graph, _ = util.invoke_if_callable(self._graph)

    @util.check_called_by("get_input_metadata")
    def get_input_metadata_impl(self):
        meta = TensorMetadata()
        for tensor in self.graph.inputs:
            meta.add(tensor.name, tensor.dtype, tensor.shape)
        return meta

    @util.check_called_by("infer")
    def infer_impl(self, feed_dict):
        start = time.time()
        values = dict(feed_dict)
        for node in self.graph.nodes:
            if node.op != "Identity":
                G_LOGGER.critical(f"Encountered an unsupported type of node: {node.op}.")
            values[node.outputs[0].name] = values[node.inputs[0].name]
        self.inference_time = time.time() - start
        return {tensor.name: values[tensor.name] for tensor in self.graph.outputs}

    @util.check_called_by("deactivate")
    def deactivate_impl(self):
        del self.graph


@mod.export()
class DestroyArgs(BaseArgs):
    """
    Reshapes: Reshape nodes that do nothing

    Depends on:

        - OnnxLoadArgs
    """

    def add_parser_args_impl(self):
        self.group.add_argument("--res-des-rename-nodes", action="store_true", default=None, help="rename them")

    def parse_impl(self, args):
        self.rename = args_util.get(args, "res_des_rename_nodes")

    def add_to_script_impl(self, script):
        name = self.arg_groups[OnnxLoadArgs].add_to_script(script)
        script.add_import(imports=["GsFromOnnx"], frm="layerwise.backend.onnx")
        name = script.add_loader(make_invocable("GsFromOnnx", name), loader_id="gs_from_onnx")
        script.add_import(imports=["Destroy"], frm="destroyer")
        return script.add_loader(make_invocable("Destroy", name, rename=self.rename), loader_id="destroy")


@mod.export()
class CopierArgs(BaseRunnerArgs):
    """
    Copier: running Identity nodes.

    Depends on:

        - DestroyArgs
    """

    def get_name_opt_impl(self):
        return "Identity-Only Runner", "res-des"

    def add_parser_args_impl(self):
        self.group.add_argument("--res-des-speed", choices=["slow", "medium", "fast"], default=None, help="how fast")

    def parse_impl(self, args):
        self.speed = args_util.get(args, "res_des_speed")

    def add_to_script_impl(self, script):
        name = self.arg_groups[DestroyArgs].add_to_script(script)
        script.add_import(imports=["Copier"], frm="destroyer")
        script.add_runner(make_invocable("Copier", name, speed=self.speed))


def groups():
    return [DestroyArgs(), CopierArgs()]
