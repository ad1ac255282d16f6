"""Faults of TensorRT found on the fake of both versions: coarse FP16, bad tactics, rejected nodes."""

from collections.abc import Callable

import pytest
from trt.conftest import ON_10, ON_11
from trt.debug_models import SIZES, coarse

Find = Callable[..., list[str]]


@ON_10
@pytest.mark.parametrize("layers", [("softplus",), ("softplus", "tanh")], ids=["one", "two"])
def test_layers_that_lose_too_much_in_fp16_are_located_and_reduced(find: Find, layers: tuple[str, ...]) -> None:
    said = find(
        """
suspect = trt(fp16=True)
print(*sorted(located(suspect)))
done = searched("reduce", suspect)
print(*sorted(name for names in done.found for name in names), done.result["verified"])
print(len(done.found), *sorted(node.name for node in onnx.load(HERE / "found.onnx").graph.node))
done = searched("bisect", suspect, tolerance=ToleranceSpec(atol={"": 3e-3}, rtol={"": 3e-3}))
print(done.found[0][0])
print(*(HERE / "home/cache/trt/candidates").glob("*.engine"))
""",
        fp16=coarse(*layers),
    )
    assert said[0].split() == sorted(layers)
    assert said[1].split() == [*sorted(layers), "True"]
    assert int(said[2].split()[0]) == len(layers)
    assert said[3] == ("tanh" if "tanh" in layers else "softplus")
    assert said[4] == ""


def test_a_requested_layer_precision_holds_in_parts(find: Find) -> None:
    said = find(
        """
kept = dict(fp16=True, precision_constraints="obey")
print(*located(trt(**kept, network={"layer_precisions": {"softplus": "float32"}})))
done = searched("reduce", trt(**kept, network={"layer_precisions": {"softplus": "float32", "exp": "float32"}}))
print(*(name for names in done.found for name in names))
print(error_of(lambda: located(trt(**kept, network={"layer_precisions": {"nothing": "float32"}}))))
""",
        fp16=coarse("softplus", "tanh"),
    )
    assert said[0] == "tanh" and said[1] == "tanh"
    assert "nothing" in said[2] and "UsageError" in said[2]


@ON_10
def test_every_node_rejected_by_the_parser_is_found(find: Find) -> None:
    said = find(
        """
done = searched("reduce", trt())
print(*sorted(name for names in done.found for name in names))
print(done.result["verified"])
""",
        unsupported_nodes=["neg", "exp"],
    )
    assert said == ["exp neg", "True"]


@ON_10
def test_an_intermittent_bad_tactic_is_found(find: Find) -> None:
    """At p = 0.3: a bad build is cached with its timings, so that searches see the same one; repeating rebuilds."""
    said = find(
        """
rates = searched("repeat", trt(), until="40").result
print(rates["bad"], rates["good"])
for _ in range(20):
    done = searched("reduce", trt())
    if done.found:
        break
    import shutil
    shutil.rmtree(HERE / "home/cache/trt")
print(done.found, done.result["verified"])
print(located(trt()))
flaky = searched("bisect", trt(), flaky=FlakySpec(0.7, 0.0), confidence=0.95)
print(flaky.found)
""",
        seed=3, bad_tactic={"layers": ["softplus"], "probability": 0.3, "scale": 1.5},
    )  # fmt: skip
    bad, good = map(int, said[0].split())
    assert bad + good == 40 and 3 <= bad <= 24
    assert said[1:3] == ["[['softplus']] True", "['softplus']"]
    assert said[3] == "[['softplus']]"


@ON_11
def test_parts_with_shape_inputs_are_built_for_the_fed_sizes(find: Find) -> None:
    said = find(
        SIZES
        + """
from layerwise._tool.backends.trt.options import ProfileSpec
profile = ProfileSpec(min={"x": [1, 2, 4]}, opt={"x": [2, 2, 4]}, max={"x": [4, 2, 4]})
suspect = trt(fp16=True, profiles=[profile], save_engine=str(HERE / "whole.engine"))
feeds = FeedSpec(shapes={"x": [[3, 2, 4]]}, iterations=2)
result = run_locate(LocateSpec(compare=sides(suspect, sized(), feeds=feeds))).result
print(*(s["node"] for s in result["suspects"]), result["stopped"])
done = searched("reduce", suspect, model=sized(), feeds=feeds)
print(done.found)
from tensorrt._plan import from_bytes
print([layer["name"] for layer in from_bytes((HERE / "whole.engine").read_bytes()).header["layers"]])
""",
        fp16=coarse("softplus"),
    )
    assert said[0].split() == ["softplus"] and said[1] == "[['softplus']]"
    assert "shape" in said[2] and "exp" in said[2]  # the file that the user asked for holds the whole model


@ON_10
def test_engines_of_searches_are_cached_within_limits(find: Find) -> None:
    said = find("""
import layerwise._tool.backends.trt.store as store
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.trt.store import Store, forget_candidates
import tensorrt
kept = Store(tensorrt)
store._MOST_OF_CANDIDATES = 1000
one = TrtOptions(short_lived=True, part=True)
models = [Loadable(data=bytes([number])) for number in range(5)]
keys = [kept.key(model, one) for model in models]
for key in keys:
    kept.keep(key, one, bytes(400))
print([kept.find(key, one) is not None for key in keys])
kept.keep(keys[0], one, bytes(5000))
print([kept.find(key, one) is not None for key in keys])
whole = kept.key(models[0], TrtOptions())
kept.keep(whole, TrtOptions(), b"whole")
forget_candidates()
print(kept.find(keys[0], one), kept.find(whole, TrtOptions()))
import os
kept.keep(keys[1], one, b"of a killed search")
store._tried.clear()
kept.keep(keys[2], one, b"of this one")
os.utime(kept.place(keys[1], one), (0, 0))
forget_candidates()
print(list((HERE / "home/cache/trt/candidates").iterdir()))
""")
    assert said[:2] == ["[False, False, False, True, True]", "[True, False, False, False, False]"]
    assert said[2:] == ["None b'whole'", "[]"]
