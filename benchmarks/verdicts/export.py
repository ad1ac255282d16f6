"""Exports of networks with random weights: `python benchmarks/verdicts/export.py DIR [NAME…]`.

For a Python with torch, transformers and onnxscript; the project's own has none of them. Without names nine small
networks are exported: DIR then holds NAME.onnx, NAME_fp16.onnx and their inputs in NAME.npz. The names of `BASE` are
networks of the usual sizes, FP32 alone.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
_TEXT = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 3, "num_attention_heads": 4}
_IMAGE = {"image_size": 64}


class Logits(torch.nn.Module):
    """A network that takes its inputs by place and gives one tensor."""

    def __init__(self, network: torch.nn.Module, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.network, self.keys = network, keys

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The logits, or else the last hidden state."""
        found = self.network(**dict(zip(self.keys, inputs, strict=True)))
        return found.logits if hasattr(found, "logits") else found.last_hidden_state


def text(kind: str, config: str, **sizes: Any) -> Made:
    """A network of token ids, with a mask whose first row has a tail of zeros."""
    mask = torch.ones(2, 32, dtype=torch.int64)
    mask[0, 29:] = 0
    return built(kind, config, {"vocab_size": 2000, **sizes}), (torch.randint(0, 2000, (2, 32)), mask)


def image(kind: str, config: str, **sizes: Any) -> Made:
    """A network of images."""
    return built(kind, config, {**_IMAGE, **sizes}, ("pixel_values",)), (torch.randn(2, 3, 64, 64),)


def built(
    kind: str, config: str, sizes: dict[str, Any], keys: tuple[str, ...] = ("input_ids", "attention_mask")
) -> Logits:
    """A network of transformers with random weights."""
    made = getattr(transformers, config)(**sizes)
    made._attn_implementation, made.use_cache = "eager", False
    return Logits(getattr(transformers, kind)(made).eval(), keys)


NETWORKS: dict[str, Callable[[], Made]] = {
    "bert": lambda: text("BertModel", "BertConfig", **_TEXT),
    "distil": lambda: text("DistilBertModel", "DistilBertConfig", n_layers=3, dim=192, hidden_dim=512, n_heads=4),
    "gpt2": lambda: text("GPT2LMHeadModel", "GPT2Config", n_layer=3, n_embd=192, n_head=4),
    "llama": lambda: text(
        "LlamaForCausalLM", "LlamaConfig", **_TEXT, num_key_value_heads=2, max_position_embeddings=128
    ),
    "qwen": lambda: text("Qwen2ForCausalLM", "Qwen2Config", **_TEXT, num_key_value_heads=2),
    "t5enc": lambda: text("T5EncoderModel", "T5Config", num_layers=3, d_model=192, d_ff=512, num_heads=4, d_kv=48),
    "vit": lambda: image("ViTModel", "ViTConfig", **{**_TEXT, "num_hidden_layers": 4}, patch_size=8),
    "convnext": lambda: image("ConvNextModel", "ConvNextConfig", hidden_sizes=[32, 64, 96, 128], depths=[2, 2, 3, 2]),
    "swin": lambda: image(
        "SwinModel", "SwinConfig", patch_size=4, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4
    ),
}

BASE: dict[str, Callable[[], Made]] = {
    "bert-base": lambda: sentence("BertModel", "BertConfig"),
    "gpt2-base": lambda: sentence("GPT2LMHeadModel", "GPT2Config"),
    "vit-base": lambda: photo("ViTModel", "ViTConfig"),
    "convnext-tiny": lambda: photo("ConvNextModel", "ConvNextConfig"),
    "mobilenet-v2": lambda: photo("MobileNetV2Model", "MobileNetV2Config"),
}


def sentence(kind: str, config: str) -> Made:
    """A network of the usual size with 128 token ids."""
    return built(kind, config, {}), (torch.randint(0, 2000, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


def photo(kind: str, config: str) -> Made:
    """A network of the usual size with an image of 224 by 224."""
    return built(kind, config, {}, ("pixel_values",)), (torch.randn(1, 3, 224, 224),)


def main(folder: Path, names: list[str]) -> None:
    """Export the networks of these names, all of them if there are none."""
    warnings.filterwarnings("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        for half in (False, True) if name in NETWORKS else (False,):
            torch.manual_seed(0)
            network, inputs = {**NETWORKS, **BASE}[name]()
            if half:
                network, inputs = network.half(), tuple(x.half() if x.is_floating_point() else x for x in inputs)
            path = folder / f"{name}{'_fp16' if half else ''}.onnx"
            with torch.no_grad():
                torch.onnx.export(
                    network, inputs, str(path), input_names=list(network.keys), output_names=["output"],
                    dynamo=True, external_data=False, optimize=True, verbose=False,
                )  # fmt: skip
            feed = dict(zip(network.keys, (x.numpy() for x in inputs), strict=True))
            np.savez(path.with_suffix(".npz"), **feed)
            print(path, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
