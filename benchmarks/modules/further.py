"""Twenty-three further small random torch modules, on which nothing was tuned when they were first measured."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from benchmarks.modules.more import image
from benchmarks.modules.zoo import SMALL, WORDS, Made, pretrained, text


class Residual(nn.Module):
    """A block of a diffusion model: two normalised convolutions, the time between them, a way around."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(32, outer)
        self.around = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        result: Tensor = self.conv2(functional.silu(self.norm2(y))) + self.around(x)
        return result


class UNet(nn.Module):
    """A small diffusion model: down, attention over places, up again beside what was on the way down."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first, self.down = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, 2, 1)
        self.high, self.low, self.middle, self.last = (
            Residual(16, 16),
            Residual(32, 32),
            Residual(32, 32),
            Residual(32, 16),
        )
        self.norm, self.parts, self.out = nn.GroupNorm(4, 32), nn.Conv2d(32, 96, 1), nn.Conv2d(32, 32, 1)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.end = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 3, 3, padding=1))
        self.register_buffer("rates", torch.exp(torch.linspace(0, -4, 8)))

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        angles = step[:, None].float() * self.rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        high = self.high(self.first(x), time)
        low = self.low(self.down(high), time)
        q, k, v = self.parts(self.norm(low)).flatten(2).chunk(3, 1)
        share = torch.softmax(q.transpose(1, 2) @ k / q.shape[1] ** 0.5, -1)
        low = low + self.out((v @ share.transpose(1, 2)).reshape(low.shape))
        both = torch.cat([self.up(self.middle(low, time)), high], 1)
        result: Tensor = self.end(self.last(both, time))
        return result


class ConformerBlock(nn.Module):
    """Half a layer of two products, attention, a convolution over time, the other half."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.behind = _two_products(width), _two_products(width)
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.each, self.batch = nn.Conv1d(width, width, 7, padding=3, groups=width), nn.BatchNorm1d(width)
        self.inner, self.last = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.before(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = functional.glu(self.wide(self.inner(x).transpose(1, 2)), 1)
        x = x + self.narrow(functional.silu(self.batch(self.each(y)))).transpose(1, 2)
        result: Tensor = self.last(x + 0.5 * self.behind(x))
        return result


class Conformer(nn.Module):
    """A small recogniser of speech."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
        self.into, self.head = nn.Linear(80, width), nn.Linear(width, 30)
        self.blocks = nn.Sequential(ConformerBlock(width), ConformerBlock(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.into(self.first(x[:, None]).permute(0, 2, 1, 3).flatten(2))
        return functional.log_softmax(self.head(self.blocks(y)), -1)


class Dilated(nn.Module):
    """Gated convolutions over time, each twice as far apart as the one before, what each adds summed up."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(8, 24, 1)
        self.gates = nn.ModuleList([weight_norm(nn.Conv1d(24, 48, 2, dilation=2**i)) for i in range(5)])
        self.parts = nn.ModuleList([nn.Conv1d(24, 48, 1) for _ in range(5)])
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(24, 24, 1), nn.PReLU(24), nn.Conv1d(24, 10, 1))

    def forward(self, x: Tensor) -> Tensor:
        y, total = self.first(x), torch.zeros(())
        for i, (gates, parts) in enumerate(zip(self.gates, self.parts, strict=True)):
            a, b = gates(functional.pad(y, (2**i, 0))).chunk(2, 1)
            kept, added = parts(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            y, total = (y + kept) * 0.5**0.5, total + added
        result: Tensor = self.last(total)
        return result


class Recommender(nn.Module):
    """Embeddings and numbers, the products of each two, and layers behind."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(50 + 10 * i, 16) for i in range(5)])
        self.below = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(31, 64), nn.ReLU(), nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 1))
        i, j = torch.tril_indices(6, 6, -1)
        self.register_buffer("pairs", i * 6 + j)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        below = self.below(numbers)
        rows = torch.stack([below, *(each(ids[:, i]) for i, each in enumerate(self.embeddings))], 1)
        products = (rows @ rows.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.above(torch.cat([below, products], 1)))


def _two_products(width: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 96), nn.SiLU(), nn.Linear(96, width))


def _words(model: str, config: str, **sizes: object) -> Callable[[], Made]:
    return lambda: pretrained(model, WORDS, text(300), config, **sizes)


def _large(model: str, config: str, batch: int, **sizes: object) -> Callable[[], Made]:
    return lambda: pretrained(model, ("pixel_values",), (torch.randn(batch, 3, 64, 64),), config, **sizes)


_LAYERS = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
_WIDE = {**_LAYERS, "intermediate_size": 128}
_GROUPED = {**SMALL, "num_key_value_heads": 2}

FURTHER: dict[str, Callable[[], Made]] = {
    "distilbert": _words(
        "DistilBertModel", "DistilBertConfig", vocab_size=300, dim=64, n_layers=2, n_heads=4, hidden_dim=128
    ),
    "roberta": _words("RobertaForSequenceClassification", "RobertaConfig", **SMALL),
    "albert": _words("AlbertModel", "AlbertConfig", embedding_size=32, **SMALL),
    "deberta": _words(
        "DebertaV2Model", "DebertaV2Config", vocab_size=300, relative_attention=True, pos_att_type=["c2p", "p2c"],
        position_buckets=8, **_WIDE,
    ),
    "mistral": _words("MistralForCausalLM", "MistralConfig", sliding_window=6, **_GROUPED),
    "qwen3": _words("Qwen3ForCausalLM", "Qwen3Config", head_dim=16, **_GROUPED),
    "gemma2": _words(
        "Gemma2ForCausalLM", "Gemma2Config", head_dim=16, sliding_window=8, query_pre_attn_scalar=16, **_GROUPED
    ),
    "phi": _words("PhiForCausalLM", "PhiConfig", **SMALL),
    "neox": _words("GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL),
    "bloom": _words("BloomForCausalLM", "BloomConfig", vocab_size=300, hidden_size=64, n_layer=2, n_head=4),
    "opt": _words("OPTForCausalLM", "OPTConfig", vocab_size=300, ffn_dim=128, word_embed_proj_dim=64, **_LAYERS),
    "bart": lambda: pretrained(
        "BartForConditionalGeneration", (*WORDS, "decoder_input_ids"), (*text(300), torch.randint(0, 300, (2, 12))),
        "BartConfig", vocab_size=300, d_model=64, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=128,
        decoder_ffn_dim=128, encoder_attention_heads=4, decoder_attention_heads=4, max_position_embeddings=64,
    ),
    "dinov2": lambda: image("Dinov2Model", "Dinov2Config", image_size=32, patch_size=8, mlp_ratio=2, **_LAYERS),
    "clip": lambda: image("CLIPVisionModel", "CLIPVisionConfig", image_size=32, patch_size=8, **_WIDE),
    "convnextv2": lambda: image(
        "ConvNextV2Model", "ConvNextV2Config", hidden_sizes=[16, 32, 48, 64], depths=[1, 2, 2, 1]
    ),
    "segformer": _large(
        "SegformerForSemanticSegmentation", "SegformerConfig", 2, depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64],
        num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32,
    ),
    "resnet": _large(
        "ResNetForImageClassification", "ResNetConfig", 2, embedding_size=16, hidden_sizes=[32, 64, 96, 128],
        depths=[1, 2, 2, 1],
    ),
    "mobilevit": _large(
        "MobileViTForImageClassification", "MobileViTConfig", 1, image_size=64, hidden_sizes=[32, 48, 64],
        neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64],
    ),
    "wav2vec2": lambda: pretrained(
        "Wav2Vec2ForCTC", ("input_values",), (torch.randn(1, 1600),), "Wav2Vec2Config", vocab_size=40,
        conv_dim=[16, 16, 16], conv_stride=[5, 4, 2], conv_kernel=[10, 8, 4], num_feat_extract_layers=3,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, **_WIDE,
    ),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 16, 16), torch.tensor([7.0])), ("x", "step")),
    "conformer": lambda: (Conformer(), (torch.randn(2, 32, 40),), ("x",)),
    "dilated": lambda: (Dilated(), (torch.randn(1, 8, 64),), ("x",)),
    "recommender": lambda: (Recommender(), (torch.randn(4, 13), torch.randint(0, 50, (4, 5))), ("numbers", "ids")),
}  # fmt: skip
"""Of transformers with random weights, but for the last four."""
