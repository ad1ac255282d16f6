"""Files of torch.save: tensors are read without torch, and nothing is unpickled."""

import base64
import io
import os
import pickle
import zipfile
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.torch_pickles import a_dict, number, tensor, text, torch_file

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.read import read_dump
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.specs import DumpRule

REAL = zlib.decompress(base64.b85decode(  # torch 2.13 wrote it
    "c-o~_%WoS+7$4j5qYH78@<^JN&=v{~q>k;icbzt=(@j|(TiRsX6k~)e$KJ#%)?R=1I8Bj2kx&A?l?zA2rQ*Pi3)lV&MF?>~LZ}i2ao|q~Gqa"
    "AfJ85EwN8VXK=J)t!=leb{YJmZSA`!H245Q<y)GSxcbz{0x!liiQBTH4HsNfl!{!akK@<9Tq*%iYAU%6~smQlv0U2h53n-!yJRIZq1EP#Jfh"
    "d?Y(^iZ{At-?SV+e9E<Y-7`E3B{(d(l)J15gYZE-7K!B1PI1r`7l}EA}dR4280}lps1Ez!b$0d^SuD!ypJqPKqMa^_j02R$230%VM#-pe+!<"
    "{d|UAJ-72*(h#{)O5L>v~$ii?B8=?Rsu~@Yu9q(8Xmh1RV!>Du}9A^%a@Jy8{Kig4$jw(OzD35mBuTt~bqLHqNt91d!Fr3g~JRc%>+-}y53Y"
    "@G4_ap@tY**+M6H37gL@0z|f(ivR|2Dj+`Lw_`oOZ;{U^uJ8OKiIvr6z`#9nR{hY6p34iQpLI75ZiyUUiT$3}k+d$u!{g1Ga~7mTCqzngUGi"
    "GBbz>=Lx?LL!3Gz(NEJU;czE0q;wF!U?0+-Lq-RQS-fpl43IrxU$yIN-KevSI}I}q_XQU97F^WO7R)-_a~Lk^kYf+lZey7Duqn1}b=fX6whS"
    "l^+X7*moOD>OV0c3Z^+R|w=D{!6wT5MEc%Q{vj7NgE9iDeO5o>h1>hQgb;hGNDwV<&Li!9U@HX1<oo*7*+*Fdkb16Fm8kPJ7RBXqOFwoIp64"
    "%>SjH*K>{j=unT4DahuXfxuvT{qx^Ywh@=7LK$APY-`Z6zH{hV3v=fbKNYDuiDL82^ZImW{YI6s+{4H{RtyUrGEJ5*UzYPdL1k^j^sV5P8Jn"
    "Qmbq518Fj2GVsEwmLrPNvx!drUpGf!*H86s5T>~q3uwm2Uq$(GWqPsgR6JyJu9=7HlouC;UI@CiHUGh}b>4d6W=)=H+9C|?2!%Kxn^au>}P@"
    "ngzCsk#(pYRKbPpP`Radxuz{zsAGRZpqPrM}b)1&4VvN2Yo5BG)FlzL}@4M(;iTa*X^i*2C45*OjO$G4$W{=b6^shrfS&g#AzVyZ_-1GxgB;"
    "`LRt!BRxFKdOc)RC3|EKJ}P|jx8VKW`5#3KUSUa9a(zDj!tS%DHrDUw;zx*I?kE189jc7b&Q9<1KZGuKmAf@|uD=}+1*-q>>$T<H`V%O%SAb"
    "dQEu(3Y3jA@2{#z@W6;+A<PdkZhO3F%USr#)=BAt<CIgv<;VkSK!$um+$5~Y+plMq>(NMyeME=GLBm`fiu+x6-0R>S+8^Z!G6w7UU~dXRqv&"
    "_Vr;Cvi8CaSzGT06L^|@jUKEFyi6)(Z$nkKs?-C$)g_ltsvrh2ak2vVK4S49-HK`?rQ19>LCuB;<4`P=f(cXV?`e8u3BE~%`k^e^H_J`@nV1"
    "Bu^Argt`=VGQiQ`wJl37>oGy=*d8|8EhrIiI4Dt1W2fI^f!h5z{;3p^dq818G?UsVTc~?R7-dh3Zz9H<kmJsVQe-ApJohly;IhZJ0@2ve7r_"
    "4nB"
))  # fmt: skip
FLOATS = np.arange(6, dtype=np.float32)


def read(folder: Path, data: bytes) -> dict[str, Array]:
    (folder / "x.pt").write_bytes(data)
    (iteration,) = read_dump(folder / "x.pt", DumpRule()).results[0]
    return dict(iteration.outputs)


def test_every_kind_of_tensor_that_torch_wrote_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, REAL)
    assert found.keys() == {f"model.{name}" for name in (
        "half", "fp8", "turned", "part", "p", "wide", "out[0]", "out[1][0]", "big"
    )}  # fmt: skip
    assert found["model.half"].dtype == ml_dtypes.bfloat16
    assert found["model.half"].astype(float).tolist() == [1.5, -2]
    assert found["model.fp8"].dtype == ml_dtypes.float8_e4m3fn
    assert found["model.fp8"].astype(float).tolist() == [0.5, 448]
    assert found["model.turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["model.part"].tolist() == [[3, 4, 5]]
    assert found["model.p"].tolist() == [3]
    assert found["model.wide"].tolist() == [7, 7, 7]
    assert found["model.out[0]"].tolist() is True
    assert found["model.out[1][0]"].tolist() == [1 + 2j]
    assert found["model.big"].dtype == np.uint16 and found["model.big"].tolist() == [65535]


@pytest.mark.parametrize(
    "kind, dtype", [("FloatStorage", ">f4"), ("ComplexFloatStorage", ">c8"), ("HalfStorage", ">f2")]
)
def test_big_endian_storages_are_turned(kind: str, dtype: str, tmp_path: Path) -> None:
    values = np.array([1, 2.5, -3], dtype)
    made = torch_file(tensor("0", kind, [3], [1], 3), {"0": values.tobytes()}, byteorder=b"big")
    assert read(tmp_path, made)["x"].tolist() == values.tolist()


def test_conjugates_and_negatives_are_made(tmp_path: Path) -> None:
    stored = np.array([1 + 2j, 3], np.complex64)
    bits = a_dict([(text("conj"), b"\x88"), (text("neg"), b"\x88")])
    made = torch_file(tensor("0", "ComplexFloatStorage", [2], [1], 2, more=bits), {"0": stored.tobytes()})
    assert read(tmp_path, made)["x"].tolist() == [-1 + 2j, -3]
    other = a_dict([(text("quantized"), b"\x88")])
    with pytest.raises(BadFile, match="metadata that is not known"):
        read(tmp_path, torch_file(tensor("0", "FloatStorage", [2], [1], 2, more=other), {"0": bytes(8)}))


def test_a_pickle_that_would_run_a_command_runs_nothing(tmp_path: Path) -> None:
    class Command:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    for protocol in (0, 2, 4, 5):
        pickled = pickle.dumps({"x": Command()}, protocol)
        with pytest.raises(BadFile, match="nothing is unpickled"):
            read(tmp_path, torch_file(pickled, {}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.pt"]


ONE = {"0": FLOATS.tobytes()}


@pytest.mark.parametrize("pickled, words", [
    (b"cbuiltins\neval\n(" + text("1") + b"tR", "builtins.eval"),
    (b"ctorch\nload\n(" + text("1") + b"tR", "torch.load"),
    (b"ctorch._utils\n_rebuild_qtensor\n)R", "_rebuild_qtensor"),
    (b"ctorch\nSize\n)\x81", "NEWOBJ"),
    (a_dict([(text("a"), tensor("0", "FloatStorage", [2], [1], 6)),
             (text("a"), tensor("0", "FloatStorage", [3], [1], 6))]), "there twice"),
    (a_dict([(number(1), tensor("0", "FloatStorage", [2], [1], 6)),
             (text("1"), tensor("0", "FloatStorage", [3], [1], 6))]), "there twice"),
    (tensor("0", "FloatStorage", [7], [1], 6), "outside of its storage"),
    (tensor("0", "FloatStorage", [2, 2], [5, 1], 6), "outside of its storage"),
    (tensor("0", "FloatStorage", [7], [1], 7), "outside of its storage of 24 bytes"),
    (tensor("0", "FloatStorage", [1], [1], 6, 6), "outside of its storage"),
    (tensor("0", "FloatStorage", [1], [1], 6, -1), "no sizes"),
    (tensor("0", "FloatStorage", [2], [-1], 6), "no sizes"),
    (tensor("0", "FloatStorage", [1 << 50], [0], 6), "LAYERWISE_MEMORY"),
    (tensor("../../0", "FloatStorage", [1], [1], 6), "is not there"),
    (tensor("0", "QInt8Storage", [1], [1], 6), "QInt8Storage"),
    (b"](" + b"N" * 9 + b"eq\x00ccollections\nOrderedDict\n(h\x00tR", "makes an OrderedDict of"),
    (b"ctorch\nSize\n((" + b"K\x01" * 65 + b"ttR", "damaged: a size that is none"),
    (b"]q\x00h\x00a", "hold each other"),
    (b"](" + b"h\x05" + b"e", "damaged"),
    (b"\x8c\x7fa", "damaged"),
    (b")" * 3, "one value"),
    (b")" + b"\x85" * 100_000, "nested too deeply"),
    (b"}", "holds no tensor"),
])  # fmt: skip
def test_what_is_no_plain_data_is_an_error(pickled: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=words):
        read(tmp_path, torch_file(pickled, ONE))


@pytest.mark.parametrize("data, words", [
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "before 1.6.*save it again"),
    (pickle.dumps({"x": 1}), "before 1.6.*save it again"),
    (b"text", "not a file of torch.save"),
    (REAL[:2000], "not a zip archive"),
    (torch_file(b"}", {}, **{"constants.pkl": b""}), "TorchScript"),
    (torch_file(tensor("0", "FloatStorage", [1], [1], 1), {"0": b"1234"}, byteorder=b"middle"), "byte order"),
])  # fmt: skip
def test_other_files_are_refused_with_what_to_do(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=words):
        read(tmp_path, data)


def test_a_damaged_storage_is_told(tmp_path: Path) -> None:
    whole = torch_file(tensor("0", "FloatStorage", [6], [1], 6), ONE)
    at = whole.index(FLOATS.tobytes())
    with pytest.raises(BadFile, match="its checksum is another than the archive says"):
        read(tmp_path, whole[: at + 1] + b"\x55" + whole[at + 2 :])


def test_a_file_that_was_written_without_checksums_is_read(tmp_path: Path) -> None:
    """As after torch.serialization.set_crc32_options(False), which leaves zeros."""
    whole = torch_file(tensor("0", "FloatStorage", [6], [1], 6), ONE)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        for entry in archive.infolist():
            whole = whole.replace(entry.CRC.to_bytes(4, "little"), bytes(4))
    assert read(tmp_path, whole)["x"].tolist() == FLOATS.tolist()


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["a\x1b[31m", "../x", "\ud800", ""]
    items = [(text(name), tensor("0", "FloatStorage", [2], [1], 6)) for name in names]
    items += [(b"G\x7f\xf8\0\0\0\0\0\0", tensor("0", "FloatStorage", [2], [1], 6))]
    found = read(tmp_path, torch_file(a_dict(items), ONE))
    assert set(found) == {"a\x1b[31m", "../x", "\\ud800", "x", "nan"}
