"""Refitter and OnnxParserRefitter."""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from ._arguments import CLASSES
from ._classes import behaves
from ._parser import load, parser_error
from ._types import dtype_of
from ._values import say, weights

_ROLES = {"CONVOLUTION": ["KERNEL", "BIAS"], "DECONVOLUTION": ["KERNEL", "BIAS"], "SCALE": ["SCALE", "SHIFT"]}


@behaves("Refitter")
class _Refitter:
    def _init(self, engine: Any, logger: Any) -> None:
        if not engine.refittable:
            raise RuntimeError("the engine was built without REFIT")
        self._engine, self._logger, self._new = engine, logger, {}

    logger = property(lambda self: self._logger)

    def _table(self) -> dict[str, Any]:
        return {initializer.name: initializer for initializer in self._engine._plan.model.graph.initializer}

    def get_all_weights(self) -> list[str]:
        return list(self._table())

    def get_missing_weights(self) -> list[str]:
        return [name for name in self._engine._plan.header["missing"] if name not in self._new]

    def _roles(self) -> list[tuple[str, str, str]]:
        """Layer, role and weights' name of every weight."""
        return [
            (layer["name"], role, name)
            for layer in self._engine._plan.header["layers"]
            for role, name in zip(_ROLES.get(layer["kind"], ["CONSTANT"]), layer["weights"], strict=False)
        ]

    def _shown(self, names: Any) -> tuple[list[str], list[Any]]:
        roles: Any = CLASSES["WeightsRole"]
        rows = [(layer, getattr(roles, role)) for layer, role, name in self._roles() if name in names]
        return [layer for layer, _role in rows], [role for _layer, role in rows]

    def get_all(self) -> Any:
        return self._shown(self.get_all_weights())

    def get_missing(self) -> Any:
        return self._shown(self.get_missing_weights())

    def set_weights(self, layer_name: str, role: Any, weights: Any) -> bool:
        for layer, known, name in self._roles():
            if layer == layer_name and known == role.name:
                return self.set_named_weights(name, weights)
        return False

    def set_named_weights(self, name: str, weights: Any, location: Any = None) -> bool:
        known = self._table().get(name)
        if known is None or int(np.prod(known.dims, dtype=np.int64)) != weights.size:
            say(self._logger, "ERROR", f"Refitter: no weights {name} of {weights.size} values")
            return False
        self._new[name] = weights
        return True

    def unset_named_weights(self, weights_name: str) -> bool:
        return self._new.pop(weights_name, None) is not None

    def get_named_weights(self, weights_name: str) -> Any:
        return self._new.get(weights_name) or weights(numpy_helper.to_array(self._table()[weights_name]))

    def get_weights_prototype(self, weights_name: str) -> Any:
        return weights(np.zeros_like(numpy_helper.to_array(self._table()[weights_name])))

    def get_weights_location(self, weights_name: str) -> Any:
        return CLASSES["TensorLocation"].HOST

    def refit_cuda_engine(self) -> bool:
        if missing := self.get_missing_weights():
            say(self._logger, "ERROR", f"Refitter: weights are missing: {missing}")
            return False
        for name, value in self._new.items():
            known = self._table()[name]
            array = value._array.reshape(tuple(known.dims))
            known.CopyFrom(numpy_helper.from_array(array.astype(numpy_helper.to_array(known).dtype), name))
        self._engine._plan.header["missing"] = []
        self._engine._sessions.clear()
        return True

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        return self.refit_cuda_engine()

    def release_refit_resources(self) -> bool:
        return True

    def get_dynamic_range(self, tensor_name: str) -> Any:
        return (0.0, 0.0)

    def set_dynamic_range(self, tensor_name: str, range: Any) -> bool:
        return False

    def get_tensors_with_dynamic_range(self) -> list[str]:
        return []


@behaves("OnnxParserRefitter")
class _ParserRefitter:
    _errors: list[Any]

    def _init(self, refitter: Any, logger: Any) -> None:
        self._refitter, self._logger, self._errors, self._loaded = refitter, logger, [], None

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index: int) -> Any:
        return self._errors[index]

    def clear_errors(self) -> None:
        self._errors = []

    def refit_from_bytes(self, model: Any, path: str | None = None) -> bool:
        try:
            found = load(model, path)
        except Exception as error:  # any way in which a protobuf can be bad
            self._errors.append(parser_error("MODEL_DESERIALIZE_FAILED", str(error)))
            return False
        for initializer in found.graph.initializer:
            array = numpy_helper.to_array(initializer)
            if initializer.name in self._refitter._table() and dtype_of(array.dtype) is not None:
                self._refitter.set_named_weights(initializer.name, weights(array))
        return True

    def refit_from_file(self, model: str) -> bool:
        return self.refit_from_bytes(Path(model).read_bytes(), model)

    def load_model_proto(self, model: Any, path: str | None = None) -> bool:
        self._loaded = (bytes(model), path)
        return True

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        return self._loaded is not None

    def refit_model_proto(self) -> bool:
        return self._loaded is not None and self.refit_from_bytes(*self._loaded)
