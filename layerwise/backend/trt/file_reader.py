"""Files that TensorRT reads itself, piece by piece."""

from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.util import make_repr

__all__ = ["FileReader"]


def FileReader(filepath: str, BaseClass: Any = None) -> Any:
    """A reader of a file for `trt.Runtime.deserialize_cuda_engine`, closed by `free` or at the end of a `with`.

    BaseClass: trt.IStreamReader by default, or IStreamReaderV2 where there is no other. BadFile if there is no file.
    """
    trt = tensorrt()
    base = BaseClass or getattr(trt, "IStreamReader", None) or trt.IStreamReaderV2

    class Reader(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)
            self.filepath, self.mode, self.make_func = filepath, "rb", FileReader
            if not Path(filepath).is_file():
                raise BadFile(filepath, "there is no such file")
            self.file = Path(filepath).open(self.mode)  # noqa: SIM115

        def read(self, size: int, stream: Any = None) -> bytes:
            """The next bytes."""
            data: bytes = self.file.read(size)
            return data

        def seek(self, offset: int, whence: int = 0) -> int:
            """Go to a place; returns it."""
            return self.file.seek(int(offset), int(whence))

        def free(self) -> None:
            """Close the file."""
            self.file.close()

        def __enter__(self) -> Any:
            return self

        def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
            self.free()

        def __repr__(self) -> str:
            return make_repr("FileReader", filepath, BaseClass=base)[0]

    return Reader()
