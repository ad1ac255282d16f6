"""Operators of ONNX, onnxruntime and torch by what they do."""

from functools import lru_cache

_VIEWS = """reshape view _unsafe_view permute transpose t squeeze unsqueeze flatten identity alias clone contiguous
detach dropout cast castlike to _to_copy to_copy lift_fresh_copy quantizelinear dequantizelinear movedim swapaxes
numpy_t type_as view_as reshape_as unflatten ravel swapdims moveaxis mt adjoint depthtospace spacetodepth
einops_rearrange expand_dims detach_ copy lift_fresh quantize_per_tensor dequantize quantize_per_channel
dequantize_per_tensor dequantize_per_channel"""
_MAYBE = "slice expand pad tile repeat concat cat slice_copy expand_as split gather select where narrow index_select"
_CLASSES = {
    "matmul": "matmul gemm fusedmatmul linear addmm mm bmm baddbmm matmulinteger qlinearmatmul matmulintegertofloat "
    "dynamicquantizematmul fusedgemm einsum matmulnbits qgemm transposematmul addmv mv dot",
    "conv": "conv fusedconv convinteger qlinearconv conv1d conv2d conv3d convolution _convolution nhwcconv",
    "convtranspose": "convtranspose conv_transpose2d conv_transpose1d",
    "add": "add qlinearadd sum add_ biasadd",
    "sub": "sub rsub",
    "mul": "mul qlinearmul mul_",
    "div": "div true_divide reciprocal",
    "norm": "layernormalization simplifiedlayernormalization skiplayernormalization embedlayernormalization layer_norm "
    "native_layer_norm skipsimplifiedlayernormalization rmsnormalization rms_norm",
    "batchnorm": "batchnormalization batch_norm _native_batch_norm_legit_no_training native_batch_norm "
    "_native_batch_norm_legit _native_batch_norm_legit_functional cudnn_batch_norm _batch_norm_no_update "
    "_batch_norm_with_update",
    "groupnorm": "groupnormalization groupnorm group_norm native_group_norm instancenormalization instance_norm",
    "gelu": "gelu fastgelu biasgelu quickgelu",
    "silu": "silu swish hardswish hard_swish",
    "softmax": "softmax _softmax biassoftmax qlinearsoftmax",
    "attention": "attention multiheadattention scaled_dot_product_attention groupqueryattention qattention "
    "packedattention _scaled_dot_product_flash_attention_for_cpu",
    "maxpool": "maxpool max_pool2d max_pool2d_with_indices",
    "meanpool": "averagepool avg_pool2d qlinearaveragepool",
    "mean": "reducemean mean globalaveragepool adaptive_avg_pool2d _adaptive_avg_pool2d qlinearglobalaveragepool",
    "reducesum": "reducesum sum_dim_intlist",
    "sigmoid": "sigmoid qlinearsigmoid",
    "embedding": "gather embedding index index_select",
    "concat": "concat cat stack qlinearconcat",
    "clip": "clip hardtanh clamp relu6",
    "leakyrelu": "leakyrelu leaky_relu qlinearleakyrelu",
    "gru": "gru dynamicquantizegru",
    "lstm": "lstm dynamicquantizelstm",
    "pow": "pow square",
    "resize": "resize upsample upsample_nearest2d upsample_bilinear2d",
}
ELEMENTWISE = frozenset(("add", "sub", "mul", "div", "pow", "min", "max", "where", "prelu"))
_ENDS = {
    "matmul": "add batchnorm",
    "conv": "add batchnorm clip relu silu mul sigmoid leakyrelu",
    "convtranspose": "add batchnorm",
    "norm": "add mul",
    "groupnorm": "add mul",
    "gelu": "mul",
    "silu": "mul div",
    "attention": "matmul",
    "add": "relu",
    "clip": "relu min",
    "mean": "div",
    "embedding": "add",
    "rotaryembedding": "add concat",
}
_ACTIVATIONS = "relu leakyrelu tanh sigmoid hardsigmoid elu selu celu softplus softsign thresholdedrelu"
_FUSED_ENDS = {"matmul": f"mul div gelu {_ACTIVATIONS}", "conv": f"add clip {_ACTIVATIONS}"}
_BIASED = frozenset(("matmul", "conv", "convtranspose", "norm", "groupnorm"))
_ACTIVATED = frozenset(("fusedconv", "fusedgemm"))
_VIEW_NAMES, _MAYBE_NAMES = frozenset(_VIEWS.split()), frozenset(_MAYBE.split())
_CLASS_OF = {word: name for name, words in _CLASSES.items() for word in words.split()}
_QUANTISED = (
    "quantizelinear",
    "matmulinteger",
    "convinteger",
    "qlinear",
    "dynamicquantize",
    "qattention",
    "quantize_per",
)


@lru_cache(maxsize=4096)
def plain(op: str) -> str:
    """The operator's name in lower case, without namespace, domain and overload ("aten.add.Tensor": "add")."""
    word = op.rpartition("::")[2]
    parts = [part for part in word.split(".") if part]
    if len(parts) > 1 and parts[0] in ("aten", "prims", "torch", "ops"):
        parts = parts[1:]
        parts = parts[1:] if parts[0] == "aten" and len(parts) > 1 else parts
        return parts[0].lower()
    return (parts[-1] if parts else word).lower()


def operator_class(op: str) -> str:
    """What operators of the same meaning have in common; the plain name for one that has no relatives."""
    word = plain(op)
    return _CLASS_OF.get(word, word)


def may_end(one: str, other: str, fused: bool = False) -> bool:
    """Whether an operator of one class may do what several do that end with the other: Gemm, and MatMul with Add.

    fused: one of the two is onnxruntime's, which scales and activates as well.
    """
    return _ends(one, other, fused) or _ends(other, one, fused)


def _ends(one: str, other: str, fused: bool) -> bool:
    return other in _ENDS.get(one, "").split() or (fused and other in _FUSED_ENDS.get(one, "").split())


def fuses(one: str, end: str) -> bool:
    """Whether onnxruntime's fused operator of a class may do what one of another class does behind it."""
    return end in _FUSED_ENDS.get(one, "").split()


def folds(one: str) -> bool:
    """Whether a normalisation by batch statistics that follows an operator of the class may lie in its weights."""
    return "batchnorm" in _ENDS.get(one, "").split()


def takes_bias(one: str) -> bool:
    """Whether operators of a class may take a bias as their third input."""
    return one in _BIASED


def is_fused(op: str) -> bool:
    """Whether it is one of onnxruntime's operators that do what follows another one too: FusedMatMul, FusedConv."""
    return plain(op).startswith("fused")


def activates(op: str) -> bool:
    """Whether it is one of those that do no more than their product and an activation: never the product alone."""
    return plain(op) in _ACTIVATED


def is_view(op: str) -> bool:
    """Whether its output holds the values of its first input: in another shape, layout or type."""
    return plain(op) in _VIEW_NAMES


def may_be_view(op: str) -> bool:
    """Whether its output may hold exactly the values of its first input, which fingerprints tell."""
    return plain(op) in _MAYBE_NAMES


def quantises(op: str) -> bool:
    """Whether it makes or reads quantised values."""
    return plain(op).startswith(_QUANTISED)


def rounds(op: str) -> bool:
    """Whether its output is codes of its first input's values."""
    return plain(op).startswith("quantize")


def restores(op: str) -> bool:
    """Whether its output is the values that its first input's codes stand for."""
    return plain(op).startswith("dequantize")
