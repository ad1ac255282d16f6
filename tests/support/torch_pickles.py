"""Files as torch.save writes them, made without torch: the opcodes of a pickle by hand, in a zip archive."""

import io
import zipfile
from collections.abc import Mapping, Sequence

END = b"."


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + len(data).to_bytes(4, "little") + data


def number(value: int) -> bytes:
    data = value.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + data


def numbers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(
    key: str, kind: str, shape: Sequence[int], strides: Sequence[int], count: int, offset: int = 0, more: bytes = b""
) -> bytes:
    """A view of storage `key` of `count` elements of torch's storage class `kind`. more: arguments that follow."""
    storage = b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text(key) + text("cpu") + number(count) + b"tQ"
    view = number(offset) + numbers(shape) + numbers(strides)
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + view + b"\x89ccollections\nOrderedDict\n)R" + more + b"tR"
    )


def a_dict(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"}(" + b"".join(key + value for key, value in items) + b"u"


def torch_file(pickled: bytes, storages: Mapping[str, bytes], **records: bytes) -> bytes:
    """The zip archive. pickled: its pickle without the end; records: `byteorder` and the like."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02" + pickled + END)
        for name, data in records.items():
            archive.writestr(f"x/{name}", data)
        for key, data in storages.items():
            archive.writestr(f"x/data/{key}", data)
    return stream.getvalue()
