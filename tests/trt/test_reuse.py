"""Engines are reused only where all that made them is known to be the same, or on request."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import layerwise_on_fake
from trt.backend_model import SETUP
from trt.conftest import ON_10, ON_11
from trt.zygote import Zygote

ROOT = Path(__file__).parents[2]
MORE = """
import os
import shutil
import msgspec
sys.dont_write_bytecode = False
from layerwise._tool.backends.trt.store import Store
ONES = {"x": np.ones(2, "f")}
def put(path, text):
    "Change a file's content, but neither its size nor its time."
    place = Path(path)
    state = place.stat()
    assert len(text) == state.st_size and place.read_bytes() != text
    place.write_bytes(text)
    os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
def forget():
    for name in [name for name in sys.modules if name in ("factor", "package", "package.inner")]:
        del sys.modules[name]
def numbers(options, path="net.py"):
    "What an engine gives, and whether it was reused."
    forget()
    runner = opened(Loadable(path=Path(path)), options)
    reused = any("The engine is reused" in note for note in runner.notes())
    return runner.infer(ONES).outputs["y"].tolist(), reused
def scaled(path, factor=2):
    weights = numpy_helper.from_array(np.full(2, factor, "f"), "w")
    node = helper.make_node("Mul", ["x", "w"], ["y"], "scale")
    found = bytes_of([node], [value("x", [2])], [value("y", [2])], [weights])
    onnx.save(onnx.load_from_string(found.data), path, save_as_external_data=True, location=f"{path}.data",
              size_threshold=0)
from pathlib import Path
Path("package").mkdir(exist_ok=True)
Path("package/__init__.py").write_text("from .inner import SECOND")
Path("package/inner.py").write_text("SECOND = 1.0")
Path("factor.py").write_text("from package import SECOND\\nFIRST = 1.0")
Path("numbers.npy").write_bytes(b"")
np.save("numbers.npy", np.ones(2, "f"))
Path("net.py").write_text('''
import os
import numpy as np
import tensorrt as trt
import factor
def load_network(builder, network):
    scale = factor.FIRST * factor.SECOND * float(os.environ.get("SCALE", "1")) * np.load("numbers.npy")
    x = network.add_input("x", trt.float32, (2,))
    w = network.add_constant((2,), np.ascontiguousarray(scale, "f")).get_output(0)
    y = network.add_elementwise(x, w, trt.ElementWiseOperation.PROD).get_output(0)
    y.name = "y"
    network.mark_output(y)
''')
SCRIPT = NetworkOptions(function="load_network")
CHANGES = {
    "the script": lambda: put("net.py", Path("net.py").read_bytes().replace(b'"1"', b'"3"')),
    "an imported module": lambda: put("factor.py", b"from package import SECOND\\nFIRST = 3.0"),
    "what that imports": lambda: put("package/inner.py", b"SECOND = 3.0"),
    "a file": lambda: put("numbers.npy", Path("numbers.npy").read_bytes().replace(*map(
        lambda many: np.full(2, many, "f").tobytes(), (1, 3)))),
    "a variable": lambda: os.environ.update(SCALE="9"),
}
"""


@pytest.fixture
def run(zygotes: Callable[[int, bool], Zygote], trt_version: int, tmp_path: Path) -> Callable[[str], list[str]]:
    """Run a script on the fake alone; the lines that it prints."""

    def go(source: str) -> list[str]:
        path = f"import sys; sys.path.insert(0, {str(ROOT / '.editable')!r})\n"
        script = path + SETUP + MORE + source
        done = zygotes(trt_version, False).run(script, str(tmp_path), {"LAYERWISE_HOME": str(tmp_path / "home")})
        assert done["code"] == 0, done["err"] + done["out"]
        return str(done["out"]).splitlines()

    return go


@ON_11
def test_an_engine_of_a_script_is_never_reused_by_itself(run: Callable[[str], list[str]]) -> None:
    said = run("""
options, factor = TrtOptions(network=SCRIPT), 1
for what, change in CHANGES.items():
    assert numbers(options) == ([factor] * 2, False), what
    change()
    factor *= 3
    assert numbers(options) == ([factor] * 2, False), what
print(list(Path("home").rglob("*.engine")))
""")
    assert said == ["[]"]


@ON_10
def test_on_request_it_is_reused_while_all_that_it_names_is_the_same(run: Callable[[str], list[str]]) -> None:
    said = run("""
options, factor = TrtOptions(network=SCRIPT, reuse=True), 1
assert numbers(options) == ([1, 1], False)
for what, change in CHANGES.items():
    assert numbers(options) == ([factor] * 2, True), what
    change()
    factor *= 3
    assert numbers(options) == ([factor] * 2, False), what
notes = "\\n".join(opened(Loadable(path=Path("net.py")), options).notes())
for part in ("net.py", "factor.py", "inner.py", "numbers.npy", "$SCALE", f"TensorRT {trt.__version__}", "onnx ",
             "load_network", "--fresh-engine", "--reuse-engine"):
    assert part in notes, (part, notes)
assert "SCALE 9" not in notes
""")
    assert said == []


def test_scripts_that_change_network_and_config_and_calibrators_count_alike(run: Callable[[str], list[str]]) -> None:
    said = run("""
Path("code.py").write_text("import factor\\ndef postprocess(network): pass\\n"
    "def postprocess_config(builder, network, config): pass\\n"
    "def load_config(builder, network): return builder.create_builder_config()\\n"
    "def load_data():\\n    import numpy as np\\n    return [{'x': np.ones(2, 'f')}]\\n")
calibrated = ConfigOptions(int8=True, calibration=FeedSpec(script="code.py"))
scaled("m.onnx")
model = Loadable(path=Path("m.onnx"))
for options in (TrtOptions(network=NetworkOptions(postprocess=["code.py"])),
                TrtOptions(config=ConfigOptions(config_postprocess="code.py:postprocess_config")),
                TrtOptions(config=ConfigOptions(config_script="code.py")), TrtOptions(config=calibrated)):
    with_request = msgspec.structs.replace(options, reuse=True)
    Path("factor.py").write_text("FIRST = 1.0")
    found = [build_engine(model, each).cached for each in (options, options, with_request, with_request, options)]
    put("factor.py", b"FIRST = 2.0")
    print(found, build_engine(model, with_request).cached)
""")
    lines = [line for line in said if line.startswith("[")]
    assert lines == ["[False, False, False, True, False] False"] * 4


def test_without_scripts_every_part_of_the_key_counts(run: Callable[[str], list[str]]) -> None:
    said = run("""
from layerwise._tool.backends import versions
from layerwise._tool.backends.trt import store
scaled("m.onnx")
def weights():
    data = Path("m.onnx.data").read_bytes()
    put("m.onnx.data", data.replace(np.full(2, 2, "f").tobytes(), np.full(2, 5, "f").tobytes()))
found = {**versions.versions()}
parts = {
    "weights": weights,
    "TensorRT": lambda: setattr(trt, "__version__", trt.__version__ + ".1"),
    "onnxruntime": lambda: setattr(store, "versions", lambda: {**found, "onnxruntime": "another"}),
    "GPU": lambda: setattr(store, "gpu_name", lambda: "another"),
    "Layerwise": lambda: setattr(store, "VERSION", "another"),
    "a library's variable": lambda: os.environ.update(NVIDIA_TF32_OVERRIDE="0"),
}
known = numbers(TrtOptions(), "m.onnx")
assert known == ([2, 2], False)
for what, change in parts.items():
    assert numbers(TrtOptions(), "m.onnx")[1], what
    change()
    assert numbers(TrtOptions(), "m.onnx") == ([5, 5], False), what
for options in (TrtOptions(config=ConfigOptions(optimization_level=2)), TrtOptions(config=ConfigOptions(tf32=True))):
    assert [numbers(options, "m.onnx")[1] for _ in range(2)] == [False, True]
""")
    assert said == []


@ON_10
def test_a_model_that_changes_while_it_is_built_leaves_no_engine(run: Callable[[str], list[str]]) -> None:
    said = run("""
scaled("m.onnx")
other = Path("m.onnx.data").read_bytes().replace(np.full(2, 2, "f").tobytes(), np.full(2, 5, "f").tobytes())
class Slow:
    changed = False
    def __call__(self, done, total, text):
        if not self.changed:
            self.changed = True
            put("m.onnx.data", other)
build_engine(Loadable(path=Path("m.onnx")), TrtOptions(), progress=Slow())
print(list(Path("home").rglob("*.engine")), numbers(TrtOptions(), "m.onnx"))
""")
    assert said == ["[] ([5.0, 5.0], False)"]


@ON_11
def test_a_plugin_library_is_never_reused_by_itself(run: Callable[[str], list[str]]) -> None:
    said = run("""
import _ctypes
shutil.copy(_ctypes.__file__, "plugin.so")
scaled("m.onnx")
model, options = Loadable(path=Path("m.onnx")), TrtOptions(network=NetworkOptions(plugins=["plugin.so"]))
asked = msgspec.structs.replace(options, reuse=True)
print([build_engine(model, each).cached for each in (options, options, asked, asked)])
with open("plugin.so", "ab") as library:
    library.write(b"changed")
print(build_engine(model, asked).cached)
found = TrtOptions(network=NetworkOptions(plugins=["libc.so.6"]), reuse=True)  # wherever the linker finds it
print([build_engine(model, found).cached for _ in range(2)])
""")
    assert said == ["[False, False, False, True]", "False", "[False, False]"]


def test_a_search_for_what_changes_from_build_to_build_always_builds(
    fake_trt: dict[str, str], trt_version: int, run: Callable[[str], list[str]], tmp_path: Path
) -> None:
    run('scaled("m.onnx")')
    done = layerwise_on_fake(
        "debug", "build", "m.onnx", "--reuse-engine", "--until", "2", "--check", "true", cwd=tmp_path, env=fake_trt
    )
    assert done.returncode == 2 and "every engine is built" in done.stderr
    both = layerwise_on_fake("run", "m.onnx", "--trt", "--reuse-engine", "--fresh-engine", cwd=tmp_path, env=fake_trt)
    assert both.returncode == 2 and "exclude each other" in both.stderr
    said = run("""
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.backends.trt.options import trt_options
def suspect(options):
    spec = DebugSpec(compare=CompareSpec(runners=[RunnerSpec(kind="trt", options=to_dict(options))]))
    return trt_options(spec.sides(anew=True).runners[0].options)
print(suspect(TrtOptions()).fresh, error_of(lambda: suspect(TrtOptions(reuse=True))))
""")
    assert said[0].startswith("True UsageError") and "every engine is built" in said[0]
