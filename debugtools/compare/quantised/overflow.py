"""INT8 products that overflow: onnxruntime sums pairs of them in 16 bits on x86 without VNNI."""

from layerwise._tool.backends.processor import integers_overflow
from layerwise._tool.backends.specs import WITHOUT_OVERFLOW, RunnerSpec


def overflow_text(spec: RunnerSpec) -> str:
    """What is said of products of INT8 that are off by more than rounding; "" where this processor does not overflow
    them, or another one runs them.
    """
    config = spec.options.get("session_config", {})
    other = spec.kind != "onnxrt" or any(name.lower() != "cpu" for name in spec.providers)
    if other or str(config.get(WITHOUT_OVERFLOW, "0")) == "1" or not integers_overflow():
        return ""
    return (
        "sums of 16 bits may overflow in its INT8 products on this processor, x86 without VNNI: quantise with "
        f"reduce_range or unsigned weights, or set {WITHOUT_OVERFLOW}=1 in onnxruntime"
    )
