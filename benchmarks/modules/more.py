"""Further small random torch modules: T5, Swin, ConvNeXt, MobileNet, a GRU and an LSTM; for pairs of exports."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.modules.zoo import Made, pretrained, text


class Recurrent(nn.Module):
    """Token ids through two layers of a GRU or an LSTM, both ways, to scores."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(300, 48), nn.LayerNorm(64)
        self.cell = kind(48, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, 20)

    def forward(self, ids: Tensor) -> Tensor:
        found, _ = self.cell(self.embed(ids))
        scores: Tensor = self.head(self.norm(found))
        return scores


class Inverted(nn.Module):
    """A block of MobileNet: wide, each channel by itself, squeezed, narrow, with a way around."""

    def __init__(self, inner: int, wide: int, outer: int, stride: int) -> None:
        super().__init__()
        self.grow = _convolved(inner, wide, 1, nn.Hardswish())
        self.each = _convolved(wide, wide, 3, nn.Hardswish(), stride, wide)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 8, 1), nn.ReLU(), nn.Conv2d(8, wide, 1), nn.Hardsigmoid()
        )
        self.shrink = _convolved(wide, outer, 1, nn.Identity())
        self.around = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        y = self.each(self.grow(x))
        y = self.shrink(y * self.squeeze(y))
        return x + y if self.around else y


def _convolved(inner: int, outer: int, size: int, act: nn.Module, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outer), act)


def _mobile() -> nn.Module:
    return nn.Sequential(
        _convolved(3, 16, 3, nn.Hardswish(), 2), Inverted(16, 32, 16, 1), Inverted(16, 48, 24, 2),
        Inverted(24, 72, 24, 1), Inverted(24, 72, 40, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 30),
    )  # fmt: skip


def image(model: str, config: str, **sizes: object) -> Made:
    """A network of transformers that takes two small images."""
    return pretrained(model, ("pixel_values",), (torch.randn(2, 3, 32, 32),), config, **sizes)


MORE: dict[str, Callable[[], Made]] = {
    "t5": lambda: pretrained(
        "T5ForConditionalGeneration", ("input_ids", "attention_mask", "decoder_input_ids"),
        (*text(300), torch.randint(0, 300, (2, 12))), "T5Config", vocab_size=300, d_model=64, d_kv=16, d_ff=128,
        num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0,
    ),
    "swin": lambda: image(
        "SwinModel", "SwinConfig", image_size=32, patch_size=2, embed_dim=32, depths=[2, 2], num_heads=[2, 4],
        window_size=4,
    ),
    "convnext": lambda: image("ConvNextModel", "ConvNextConfig", hidden_sizes=[16, 32, 48, 64], depths=[1, 2, 2, 1]),
    "mobilenet": lambda: (_mobile(), (torch.randn(1, 3, 64, 64),), ("image",)),
    "gru": lambda: (Recurrent(nn.GRU), (torch.randint(0, 300, (2, 12)),), ("ids",)),
    "lstm2": lambda: (Recurrent(nn.LSTM), (torch.randint(0, 300, (2, 12)),), ("ids",)),
}  # fmt: skip
