"""Six small random torch modules: BERT, GPT-2, Llama with grouped queries, ViT, Whisper-like, a detector."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

KINDS: dict[str, dict[str, Any]] = {
    "dynamo": {"dynamo": True, "external_data": False},
    "plain": {"dynamo": True, "external_data": False, "optimize": False},
    "torchscript": {"dynamo": False, "opset_version": 17},
    "torchscript13": {"dynamo": False, "opset_version": 13},
    "sdpa17": {"dynamo": False, "opset_version": 17},
    "sdpa18": {"dynamo": True, "external_data": False, "opset_version": 18},
    "sdpa23": {"dynamo": True, "external_data": False, "opset_version": 23},
}
"""Exporters; where the name has sdpa, of networks whose attention is torch's own function, an operator of opset 23."""
Made = tuple[nn.Module, tuple[Tensor, ...], tuple[str, ...]]


class Called(nn.Module):
    """A Hugging Face model that takes its tensors in order and returns one: `net` with these names of arguments."""

    def __init__(self, net: nn.Module, keys: Sequence[str]) -> None:
        super().__init__()
        self.net, self.keys = net, tuple(keys)

    def forward(self, *values: Tensor) -> Tensor:
        found = self.net(**dict(zip(self.keys, values, strict=True)))
        result: Tensor = found.logits if hasattr(found, "logits") else found.last_hidden_state
        return result


class Detector(nn.Module):
    """A small detector: a pyramid of two levels, heads, the boxes of the best scores."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.low, self.middle, self.high = (
            _conv(3, 16, 2),
            _conv(16, 32, 2),
            _conv(32, 64, 2),
            _conv(64, 96, 2),
        )
        self.lateral, self.merge = nn.Conv2d(96, 64, 1), _conv(128, 64)
        self.heads = nn.ModuleList(nn.Sequential(_conv(64, 64), nn.Conv2d(64, 9, 1)) for _ in range(2))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        middle = self.middle(self.low(self.stem(image)))
        top = self.lateral(self.high(middle))
        wide = nn.functional.interpolate(top, scale_factor=2.0, mode="nearest")
        levels = self.merge(torch.cat([middle, wide], 1)), top
        found = [head(level).flatten(2).transpose(1, 2) for level, head in zip(levels, self.heads, strict=True)]
        both = torch.cat(found, 1)
        boxes, scores = both[..., :4].sigmoid() * 64, both[..., 4:].softmax(-1)
        best, classes = scores.max(-1)
        top_scores, at = best.topk(10, 1)
        return torch.gather(boxes, 1, at.unsqueeze(-1).expand(-1, -1, 4)), top_scores, classes


def _conv(inner: int, outer: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.SiLU())


def names(*, further: bool = False) -> list[str]:
    """The twelve networks that measurements are made with, or those beside them."""
    from benchmarks.modules.further import FURTHER  # built of what this module has
    from benchmarks.modules.more import MORE

    return list(FURTHER) if further else [*MODULES, *MORE]


def _modules() -> dict[str, Callable[[], Made]]:
    from benchmarks.modules.further import FURTHER
    from benchmarks.modules.more import MORE

    return {**MODULES, **MORE, **FURTHER}


def build(name: str) -> Made:
    """A network in evaluation mode with its inputs and their names: the same every time."""
    torch.manual_seed(0)
    module, inputs, keys = _modules()[name]()
    return _spread(module.eval()), inputs, keys


def export(name: str, kind: str, path: Path) -> None:
    """Write a network's ONNX model as torch's exporter `kind` makes it."""
    module, inputs, keys = build(name)
    if kind.startswith("sdpa"):
        module.net.set_attn_implementation("sdpa")
    named = {"input_names": list(keys), "verbose": False, **KINDS[kind]}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, str(path), **named)


def _spread(module: nn.Module) -> nn.Module:
    """Biases, scales and statistics of their own, as training leaves them."""
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for value in module.parameters():
            if value.ndim == 1:
                value.add_(torch.randn(value.shape, generator=random) * 0.05)
        for name, buffer in module.named_buffers():
            if "running" in name:
                buffer.add_(torch.rand(buffer.shape, generator=random) * 0.3)
    return module


def pretrained(model: str, keys: tuple[str, ...], inputs: tuple[Tensor, ...], config: str, **sizes: Any) -> Made:
    """A network of transformers with random weights."""
    settings = getattr(transformers, config)(**sizes)
    settings._attn_implementation, settings.use_cache = "eager", False
    return Called(getattr(transformers, model)(settings), keys), inputs, keys


def text(vocabulary: int) -> tuple[Tensor, Tensor]:
    """Token ids and a mask whose first row ends in three hidden places."""
    mask = torch.ones(2, 16, dtype=torch.int64)
    mask[0, 13:] = 0
    return torch.randint(0, vocabulary, (2, 16)), mask


WORDS = ("input_ids", "attention_mask")
SMALL = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}
MODULES: dict[str, Callable[[], Made]] = {
    "bert": lambda: pretrained("BertModel", WORDS, text(300), "BertConfig", **SMALL),
    "gpt2": lambda: pretrained(
        "GPT2LMHeadModel", WORDS, text(300), "GPT2Config", n_layer=3, n_embd=64, n_head=4, vocab_size=300,
        bos_token_id=0, eos_token_id=0,
    ),
    "llama": lambda: pretrained(
        "LlamaForCausalLM", WORDS, text(300), "LlamaConfig", num_key_value_heads=2, max_position_embeddings=64,
        **SMALL,
    ),
    "vit": lambda: pretrained(
        "ViTModel", ("pixel_values",), (torch.randn(2, 3, 32, 32),), "ViTConfig", num_hidden_layers=3, hidden_size=64,
        intermediate_size=128, num_attention_heads=4, image_size=32, patch_size=8,
    ),
    "whisper": lambda: pretrained(
        "WhisperForConditionalGeneration", ("input_features", "decoder_input_ids", "decoder_attention_mask"),
        (torch.randn(2, 20, 64), *text(300)), "WhisperConfig", vocab_size=300, num_mel_bins=20,
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=32, max_target_positions=24, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    ),
    "detector": lambda: (Detector(), (torch.randn(1, 3, 64, 64),), ("image",)),
}  # fmt: skip
