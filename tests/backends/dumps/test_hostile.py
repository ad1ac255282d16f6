"""Dumps that are damaged, or made to do harm: an error that names the file, and nothing written or waited for."""

import io
import os
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from layerwise._tool.backends.dumps.read import read_dump
from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.specs import DumpRule

_stream = io.BytesIO()
np.save(_stream, np.arange(300, dtype=np.float32))
ONE = _stream.getvalue()


def refused(path: Path, words: str) -> None:
    """Everything is read, and that must end with a BadFile that says `words`; nothing may appear beside it."""
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(BadFile, match=words):
        dict(read_dump(path, DumpRule()).results[0][0].outputs)
    assert sorted(path.parent.rglob("*")) == before


def zipped(path: Path, *names: str, data: bytes = ONE, method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)  # of names that are there twice
        for name in names:
            archive.writestr(name, data)
    return path


def tarred(path: Path, kind: bytes, name: str = "a.npy", mode: str = "w") -> Path:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.addfile(info)
    return path


@pytest.mark.parametrize("name, words", [
    ("../a.npy", "leads out"), ("/a.npy", "leads out"), ("a/../../b.npy", "leads out"), ("a\\b.npy", "leads out"),
    ("/".join("d" * 40) + "/a.npy", "too deep"), ("a.txt", "holds no tensors"), ("a.zip", "holds no tensors"),
])  # fmt: skip
def test_paths_that_lead_elsewhere(name: str, words: str, tmp_path: Path) -> None:
    refused(zipped(tmp_path / "d.zip", name), words)


def test_names_that_are_there_twice(tmp_path: Path) -> None:
    refused(zipped(tmp_path / "d.zip", "a.npy", "a.npy"), "a.npy is there twice")
    (tmp_path / "d").mkdir()
    for name in ("x.npy", "x.NPY"):
        (tmp_path / "d" / name).write_bytes(ONE)
    refused(tmp_path / "d", "x is there twice in one iteration")
    (tmp_path / "e").mkdir()
    header = (
        b'{"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    )
    (tmp_path / "e" / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"1")
    refused(tmp_path / "e", "there twice")


def test_links_pipes_and_devices(tmp_path: Path) -> None:
    for kind, words in (("link", "is a link"), ("pipe", "is a pipe"), ("loop", "is a link")):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "b.npy").write_bytes(ONE)
        if kind == "pipe":
            os.mkfifo(folder / "a.npy")
        else:
            (folder / "a.npy").symlink_to("/dev/zero" if kind == "link" else ".")
        refused(folder, words)
    for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)):
        refused(tarred(tmp_path / f"{number}.tar", kind), "is a link, a pipe or a device")
    refused(tarred(tmp_path / "up.tar", tarfile.REGTYPE, "../a.npy"), "leads out")
    info = zipfile.ZipInfo("a.npy")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "l.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    refused(tmp_path / "l.zip", "is a link")


def test_damaged_archives(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "d.zip", "a.npy").read_bytes()
    packed = zipped(tmp_path / "p.zip", "a.npy", method=zipfile.ZIP_DEFLATED).read_bytes()
    with tarfile.open(tmp_path / "d.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("a.npy")
        info.size = len(ONE)
        archive.addfile(info, io.BytesIO(ONE))
    gzipped = (tmp_path / "d.tar.gz").read_bytes()
    end, entry, data = whole.rindex(b"PK\1\2"), packed.rindex(b"PK\1\2"), whole.index(ONE) + 200
    cases = {
        "cut.zip": whole[:-30],
        "crc.zip": whole[:data] + b"\xff" + whole[data + 1 :],
        "nul.zip": whole.replace(b"a.npy", b"\0.npy"),
        "name.zip": whole.replace(b"a.npy", b"b.npy", 1),
        "size.zip": whole[: end + 20] + struct.pack("<II", 9000, 9000) + whole[end + 28 :],
        "lies.zip": packed[: entry + 24] + struct.pack("<I", 1400) + packed[entry + 28 :],
        "body.zip": packed[:60] + b"\0\0\0\0" + packed[64:],
        "cut.tar.gz": gzipped[: len(gzipped) // 2],
        "no.tar.gz": ONE,
        "no.tar": ONE * 3,
        "no.zip": ONE,
        "cut.tar": b"",
    }  # fmt: skip
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, "damaged|archive|gzip|wrong|within|no tensors|shape needs")


def test_an_archive_that_unpacks_to_more_than_it_says_or_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from layerwise._tool.backends.dumps import packed

    big = ONE[:128].replace(b"(300,)", b"(9000000,)") + bytes(36_000_000)
    path = zipped(tmp_path / "d.zip", "a.npz", data=b"", method=zipfile.ZIP_DEFLATED)
    inner = zipped(tmp_path / "i.npz", "x.npy", data=big[:128] + bytes(100), method=zipfile.ZIP_DEFLATED)
    zipped(path, "a.npz", data=inner.read_bytes(), method=zipfile.ZIP_DEFLATED)
    refused(path, "shape needs")
    monkeypatch.setattr(packed, "_SMALL", 0)
    monkeypatch.setattr(packed, "_SHARE", 1 << 62)
    refused(zipped(tmp_path / "b.zip", "a.npy", method=zipfile.ZIP_DEFLATED), "no room")


@pytest.mark.parametrize("data, words", [
    (ONE[:-1], "shape needs"), (ONE + b"x", "shape needs"), (ONE[:50], "header|shape"), (b"", "not an .npy"),
    (ONE.replace(b"'<f4'", b"'|O' "), "never unpickled"), (ONE.replace(b"(300,)", b"(-1,) "), "bad shape"),
    (ONE.replace(b"(300,)", b"(9**9)"), "header"),
])  # fmt: skip
def test_damaged_arrays(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.npy").write_bytes(data)
    refused(tmp_path / "d", words)


def test_names_are_only_names(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in (b"\xff.npy", b"\x1b[31m.npy", b"[red].npy", b"nan.npy", b"$(touch x).npy"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as stream:  # noqa: PTH118, PTH123
            stream.write(ONE)
    (found,) = read_dump(folder, DumpRule()).results[0]
    assert set(found.outputs) == {"\\udcff", "\x1b[31m", "[red]", "nan", "$(touch x)"}
    assert all(found.outputs[name].shape == (300,) for name in found.outputs)


def test_a_file_that_changes_after_its_header_was_read(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.npy").write_bytes(ONE)
    (found,) = read_dump(tmp_path / "d", DumpRule()).results[0]
    (tmp_path / "d" / "a.npy").write_bytes(ONE[:200])
    with pytest.raises(LayerwiseError, match=r"a\.npy"):
        found.outputs["a"]
    (tmp_path / "d" / "a.npy").unlink()
    os.mkfifo(tmp_path / "d" / "a.npy")
    with pytest.raises(LayerwiseError, match="is a pipe"):
        found.outputs["a"]
