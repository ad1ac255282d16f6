"""EngineInspector: the JSON of 10 ("Bindings") and of 11 ("I/O Tensors"), and the one-line form."""

import json
from typing import Any

from ._classes import behaves, new
from ._recording import version

_SHOWN = {"FLOAT": "FP32", "HALF": "FP16", "INT8": "Int8", "INT32": "Int32", "INT64": "Int64", "BOOL": "Bool"}


def inspector(engine: Any) -> Any:
    """An inspector of an engine."""
    return new("EngineInspector", _engine=engine)


@behaves("EngineInspector")
class _Inspector:
    _engine: Any

    def get_layer_information(self, layer_index: int, format: Any) -> str:
        layers = self._layers()
        if not 0 <= layer_index < len(layers):
            return ""
        return self._text(layers[layer_index], format)

    def get_engine_information(self, format: Any) -> str:
        layers = self._layers()
        if format.name != "JSON":
            lines = [self._text(layer, format) for layer in layers]
            return "\n".join(["Layers:", *lines, "", "Bindings:", *self._names()])
        found: dict[str, Any] = {"Layers": layers}
        if version() == 10:
            found["Bindings"] = self._names()
        else:
            found["I/O Tensors"] = [self._tensor(entry) for entry in self._engine._plan.header["io"]]
        return json.dumps(found, indent=1)

    def _names(self) -> list[str]:
        return [entry["name"] for entry in self._engine._plan.header["io"]]

    def _text(self, layer: Any, format: Any) -> str:
        if format.name == "JSON":
            return json.dumps(layer)
        return layer if isinstance(layer, str) else f"{layer['Name']}: {layer['LayerType']}"

    def _layers(self) -> list[Any]:
        header, found = self._engine._plan.header, []
        for at in range(len(header["profiles"])):
            suffix = f" [profile {at}]" if at else ""
            for layer in header["layers"]:
                name = header["internal"].get(f"layer {layer['name']}", layer["name"]) + suffix
                found.append(name if header["verbosity"] != "DETAILED" else self._layer(layer, name))
        return [] if header["verbosity"] == "NONE" else found

    def _layer(self, layer: dict[str, Any], name: str) -> dict[str, Any]:
        kind = layer["kind"].title().replace("_", "")
        return {
            "Name": name,
            "LayerType": kind,
            "Inputs": [self._io(layer, *value) for value in layer["inputs"]],
            "Outputs": [self._io(layer, *value) for value in layer["outputs"]],
            "ParameterType": kind,
            "TacticName": f"fake_{layer['kind'].lower()}_{layer['at']}",
            "TacticValue": f"0x{layer['tactic']:016x}",
            "StreamId": 0,
            "Metadata": "" if name.startswith("__myl") else layer["metadata"],
        }

    def _io(self, layer: dict[str, Any], name: str, kind: str, shape: list[int]) -> dict[str, Any]:
        precision = layer["precision"] if kind == "FLOAT" else kind
        name = self._engine._plan.header["internal"].get(name, name)
        found = {"Name": name, "Location": "Device", "Dimensions": shape}
        if version() == 10:
            return {**found, "Format/Datatype": f"Row major linear {_SHOWN.get(precision, precision)}"}
        return {**found, "Format": "Row major linear", "Datatype": _SHOWN.get(precision, precision)}

    def _tensor(self, entry: dict[str, Any]) -> dict[str, Any]:
        profiles = self._engine._plan.header["profiles"]
        return {
            "Name": entry["name"],
            "IOMode": entry["mode"].capitalize(),
            "DataType": _SHOWN.get(entry["dtype"], entry["dtype"]),
            "Dimensions": entry["shape"],
            "Location": "Host" if entry["shape_io"] else "Device",
            "ProfileInfo": [
                {"Profile": at, **dict(zip(("Min", "Opt", "Max"), p["shapes"][entry["name"]], strict=True))}
                for at, p in enumerate(profiles)
                if entry["name"] in p["shapes"]
            ],
        }
