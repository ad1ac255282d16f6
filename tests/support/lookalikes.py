"""Small models that take the inputs of well-known exports, with the operators that decide what may be fed."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

_HEAD = '<ir_version: 9, opset_import: ["": 17]>\n'
H = 8
"""Width of hidden states: two heads of four."""


def model(text: str, weights: Mapping[str, tuple[int, ...]], constants: Mapping[str, object] = {}) -> onnx.ModelProto:
    """A model from its text; weights are small random floats of these shapes."""
    made = onnx.parser.parse_model(_HEAD + text)
    _rename(made)
    rng = np.random.RandomState(0)
    for name, shape in weights.items():
        values = (rng.standard_normal(shape) * 0.1).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(values, name))
    for name, value in constants.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(made)
    return made


def _rename(message: Any) -> None:
    """Write in names what the parser takes in none: dots, sums and halves."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            is_many = not isinstance(value, str)
            new = [_spelt(text) for text in value] if is_many else _spelt(value)
            if is_many:
                del value[:]
                value.extend(new)
            else:
                setattr(message, field.name, new)
        elif field.type == field.TYPE_MESSAGE:
            for inner in value if hasattr(value, "append") else [value]:
                _rename(inner)


def _spelt(text: str) -> str:
    return text.replace("_DOT_", ".").replace("_PLUS_", " + ").replace("_HALF", " / 2")


def bert() -> onnx.ModelProto:
    """Token, position and segment embeddings; the mask is 1 - mask times a large number, added to the scores."""
    return model(
        """bert (int64[batch_size, sequence_length] input_ids, int64[batch_size, sequence_length] attention_mask,
               int64[batch_size, sequence_length] token_type_ids) => (float[batch_size, sequence_length, 8] y) {
        w = Gather<axis = 0>(word_DOT_weight, input_ids)
        t = Gather<axis = 0>(token_type_DOT_weight, token_type_ids)
        s = Shape(input_ids)
        n = Gather<axis = 0>(s, one)
        all = Range(zero, n, one)
        p = Gather<axis = 0>(position_DOT_weight, all)
        wt = Add(w, t)
        h = Add(wt, p)
        m4 = Unsqueeze(attention_mask, axes1)
        mf = Cast<to = 1>(m4)
        off = Sub(onef, mf)
        bias = Mul(off, low)
        kt = Transpose<perm = [0, 2, 1]>(h)
        raw = MatMul(h, kt)
        scores = Add(raw, bias)
        a = Softmax<axis = -1>(scores)
        y = MatMul(a, h)
    }""",
        {"word.weight": (30522, H), "token_type.weight": (2, H), "position.weight": (512, H)},
        {"zero": np.int64(0), "one": np.int64(1), "axes1": np.array([1]), "onef": np.float32(1),
         "low": np.float32(-3.4e38)},
    )  # fmt: skip


def llama() -> onnx.ModelProto:
    """A decoder with past; positions are indexed; a boolean mask of all positions goes through And into Where."""
    return model(
        """llama (int64[batch, sequence_length] input_ids, int64[batch,
                past_sequence_length_PLUS_sequence_length] attention_mask,
                int64[batch, sequence_length] position_ids,
                float[batch, past_sequence_length, 8] past_key_values_DOT_0_DOT_key,
                float[batch, past_sequence_length, 8] past_key_values_DOT_0_DOT_value) => (float[batch, s, 8] y) {
        w = Gather<axis = 0>(model_DOT_embed_tokens_DOT_weight, input_ids)
        cos = Gather<axis = 0>(cos_cache, position_ids)
        h = Mul(w, cos)
        k = Concat<axis = 1>(past_key_values_DOT_0_DOT_key, h)
        v = Concat<axis = 1>(past_key_values_DOT_0_DOT_value, h)
        kt = Transpose<perm = [0, 2, 1]>(k)
        raw = MatMul(h, kt)
        mb = Cast<to = 9>(attention_mask)
        m3 = Unsqueeze(mb, axes1)
        both = And(m3, true)
        bias = Where(both, zerof, low)
        scores = Add(raw, bias)
        a = Softmax<axis = -1>(scores)
        y = MatMul(a, v)
    }""",
        {"model.embed_tokens.weight": (32000, H), "cos_cache": (64, H)},
        {"axes1": np.array([1]), "true": np.array(True), "zerof": np.float32(0), "low": np.float32(-np.inf)},
    )


def yolo() -> onnx.ModelProto:
    """A convolutional detector of total stride 32 whose thresholds of NonMaxSuppression are inputs."""
    chain = "\n".join(
        f"x{i + 1} = Conv<strides = [2, 2], pads = [1, 1, 1, 1], kernel_shape = [3, 3]>(x{i}, w{i})" for i in range(5)
    )
    weights = {"w0": (4, 3, 3, 3), **{f"w{i}": (4, 4, 3, 3) for i in range(1, 5)}, "head": (5, 4, 1, 1)}
    return model(
        f"""yolo (float[batch, 3, height, width] images, int64 max_output_boxes, float iou_threshold,
               float score_threshold) => (int64[n, 3] selected, float[batch, boxes, 5] predictions) {{
        x0 = Identity(images)
        {chain}
        out = Conv(x5, head)
        flat = Reshape(out, to3)
        p = Sigmoid(flat)
        predictions = Transpose<perm = [0, 2, 1]>(p)
        boxes = Slice(predictions, s0, s4, s2)
        score = Slice(predictions, s4, s5, s2)
        scores = Transpose<perm = [0, 2, 1]>(score)
        up = Resize<mode = "nearest">(out, , twice)
        back = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(up)
        same = Add(back, out)
        selected = NonMaxSuppression(boxes, scores, max_output_boxes, iou_threshold, score_threshold)
    }}""",
        weights,
        {"to3": np.array([0, 5, -1]), "s0": np.array([0]), "s4": np.array([4]), "s5": np.array([5]),
         "s2": np.array([2]), "twice": np.array([1, 1, 2, 2], np.float32)},
    )  # fmt: skip


def ssd() -> onnx.ModelProto:
    """A detector over uint8 images with the channels last, and TopK with k as an input."""
    return model(
        """ssd (uint8[unk__1, unk__2, unk__3, 3] image_tensor, int64[1] k)
            => (float[unk__1, 4, n] best, int64[unk__1, 4, n] at) {
        f = Cast<to = 1>(image_tensor)
        g = Div(f, scale)
        c = Transpose<perm = [0, 3, 1, 2]>(g)
        x = Conv<strides = [16, 16], kernel_shape = [16, 16]>(c, stem)
        flat = Reshape(x, to3)
        best, at = TopK<axis = -1>(flat, k)
    }""",
        {"stem": (4, 3, 16, 16)},
        {"to3": np.array([0, 4, -1]), "scale": np.float32(255)},
    )


def detr() -> onnx.ModelProto:
    """A transformer over image features with a mask of pixels, and the original sizes to scale the boxes with."""
    return model(
        """detr (float[batch_size, num_channels, height, width] pixel_values,
               int64[batch_size, height, width] pixel_mask,
               int64[batch_size, 2] orig_target_sizes) => (float[batch_size, q, 2] boxes) {
        f = Conv<strides = [8, 8], kernel_shape = [8, 8]>(pixel_values, stem)
        mf = Cast<to = 1>(pixel_mask)
        m4 = Unsqueeze(mf, axes1)
        half = MaxPool<kernel_shape = [8, 8], strides = [8, 8]>(m4)
        kept = Cast<to = 9>(half)
        flat = Reshape(f, to8)
        keys = Transpose<perm = [0, 2, 1]>(flat)
        mflat = Reshape(kept, to1)
        raw = MatMul(query, flat)
        scores = Where(mflat, raw, low)
        a = Softmax<axis = -1>(scores)
        found = MatMul(a, keys)
        box = MatMul(found, out)
        unit = Sigmoid(box)
        size = Cast<to = 1>(orig_target_sizes)
        size3 = Unsqueeze(size, axes1)
        boxes = Mul(unit, size3)
    }""",
        {"stem": (H, 3, 8, 8), "query": (1, 5, H), "out": (H, 2)},
        {"axes1": np.array([1]), "to8": np.array([0, H, -1]), "to1": np.array([0, 1, -1]), "low": np.float32(-1e9)},
    )


def whisper_encoder() -> onnx.ModelProto:
    """Two convolutions over mel frames, and as many fixed positions as half of 96 frames."""
    return model(
        """whisper (float[batch_size, feature_size, encoder_sequence_length] input_features)
                => (float[b, s, 8] last_hidden_state) {
        a = Conv<pads = [1, 1]>(input_features, conv1)
        g = Relu(a)
        b2 = Conv<pads = [1, 1], strides = [2]>(g, conv2)
        h = Transpose<perm = [0, 2, 1]>(b2)
        last_hidden_state = Add(h, embed_positions)
    }""",
        {"conv1": (H, 80, 3), "conv2": (H, H, 3), "embed_positions": (48, H)},
    )


def whisper_decoder() -> onnx.ModelProto:
    """A merged decoder: a flag chooses between the branch that uses the past and the one that does not."""
    return model(
        """decoder (int64[batch_size, decoder_sequence_length] input_ids,
                  float[batch_size, encoder_sequence_length_HALF, 8] encoder_hidden_states,
                  float[batch_size, past_decoder_sequence_length, 8] past_key_values_DOT_0_DOT_decoder_DOT_key,
                  float[batch_size, encoder_sequence_length_out, 8] past_key_values_DOT_0_DOT_encoder_DOT_key,
                  int64[decoder_sequence_length] cache_position,
                  bool[1] use_cache_branch) => (float[batch_size, s, 51865] logits) {
        e = Gather<axis = 0>(decoder_DOT_embed_tokens_DOT_weight, input_ids)
        p = Gather<axis = 0>(decoder_DOT_embed_positions_DOT_weight, cache_position)
        h = Add(e, p)
        y = If(use_cache_branch) <
            then_branch = with_past () => (float[b, s, 8] y1) {
                k1 = Concat<axis = 1>(past_key_values_DOT_0_DOT_decoder_DOT_key, h)
                t1 = Transpose<perm = [0, 2, 1]>(k1)
                raw1 = MatMul(h, t1)
                a1 = Softmax<axis = -1>(raw1)
                z1 = MatMul(a1, k1)
                t2 = Transpose<perm = [0, 2, 1]>(past_key_values_DOT_0_DOT_encoder_DOT_key)
                raw2 = MatMul(z1, t2)
                a2 = Softmax<axis = -1>(raw2)
                y1 = MatMul(a2, past_key_values_DOT_0_DOT_encoder_DOT_key)
            },
            else_branch = without () => (float[b, s, 8] y2) {
                t3 = Transpose<perm = [0, 2, 1]>(encoder_hidden_states)
                raw3 = MatMul(h, t3)
                a3 = Softmax<axis = -1>(raw3)
                y2 = MatMul(a3, encoder_hidden_states)
            }
        >
        logits = MatMul(y, proj_out)
    }""",
        {"decoder.embed_tokens.weight": (51865, H), "decoder.embed_positions.weight": (448, H), "proj_out": (H, 51865)},
    )


def t5_decoder() -> onnx.ModelProto:
    """Masks of the encoder and a decoder with past; relative positions are counted, bounded and looked up."""
    return model(
        """t5 (int64[batch_size, encoder_sequence_length] encoder_attention_mask,
             int64[batch_size, decoder_sequence_length] decoder_input_ids,
             float[batch_size, encoder_sequence_length, 8] encoder_hidden_states,
             float[batch_size, past_decoder_sequence_length, 8] past_key_values_DOT_0_DOT_decoder_DOT_key,
             float[batch_size, past_decoder_sequence_length, 8] past_key_values_DOT_0_DOT_decoder_DOT_value)
             => (float[batch_size, s, 8] y) {
        h = Gather<axis = 0>(shared_DOT_weight, decoder_input_ids)
        k = Concat<axis = 1>(past_key_values_DOT_0_DOT_decoder_DOT_key, h)
        v = Concat<axis = 1>(past_key_values_DOT_0_DOT_decoder_DOT_value, h)
        ks = Shape(k)
        n = Gather<axis = 0>(ks, one)
        at = Range(zero, n, one)
        bucket = Min(at, last)
        bias = Gather<axis = 0>(relative_attention_bias_DOT_weight, bucket)
        row = Transpose<perm = [1, 0]>(bias)
        kt = Transpose<perm = [0, 2, 1]>(k)
        raw = MatMul(h, kt)
        scored = Add(raw, row)
        a = Softmax<axis = -1>(scored)
        z = MatMul(a, v)
        mf = Cast<to = 1>(encoder_attention_mask)
        m3 = Unsqueeze(mf, axes1)
        off = Sub(onef, m3)
        low = Mul(off, lowest)
        et = Transpose<perm = [0, 2, 1]>(encoder_hidden_states)
        cross = MatMul(z, et)
        masked = Add(cross, low)
        b2 = Softmax<axis = -1>(masked)
        y = MatMul(b2, encoder_hidden_states)
    }""",
        {"shared.weight": (32128, H), "relative_attention_bias.weight": (32, 1)},
        {"zero": np.int64(0), "one": np.int64(1), "last": np.int64(31), "axes1": np.array([1]), "onef": np.float32(1),
         "lowest": np.float32(-3.4e38)},
    )  # fmt: skip


def ctc() -> onnx.ModelProto:
    """Speech features with lengths in frames; frames behind the end are masked, and an LSTM takes the lengths."""
    return model(
        """ctc (float[audio_signal_dynamic_axes_1, 80, audio_signal_dynamic_axes_2] audio_signal,
              int32[length_dynamic_axes_1] length) => (float[t, d, b, 4] logprobs) {
        x = Conv<pads = [1, 1], strides = [1]>(audio_signal, conv)
        s = Shape(x)
        n = Gather<axis = 0>(s, two)
        n32 = Cast<to = 6>(n)
        at = Range(zero, n32, one)
        l2 = Unsqueeze(length, axes1)
        ok = Less(at, l2)
        ok3 = Unsqueeze(ok, axes1)
        kept = Where(ok3, x, zerof)
        steps = Transpose<perm = [2, 0, 1]>(kept)
        logprobs = LSTM<hidden_size = 4>(steps, w, r, , length)
    }""",
        {"conv": (H, 80, 3), "w": (1, 16, H), "r": (1, 16, 4)},
        {"two": np.int64(2), "zero": np.int32(0), "one": np.int32(1), "axes1": np.array([1]), "zerof": np.float32(0)},
    )


def wav2vec() -> onnx.ModelProto:
    """Raw audio through convolutions of total stride 320."""
    strides, kernels = (5, 2, 2, 2, 2, 2, 2), (10, 3, 3, 3, 3, 2, 2)
    chain = "\n".join(
        f"x{i + 1} = Conv<strides = [{stride}], kernel_shape = [{kernel}]>(x{i}, w{i})"
        for i, (stride, kernel) in enumerate(zip(strides, kernels, strict=True))
    )
    weights = {f"w{i}": (4, 1 if i == 0 else 4, k) for i, k in enumerate(kernels)}
    return model(
        f"""wav (float[batch, sequence] input_values) => (float[batch, frames, 4] logits) {{
        x0 = Unsqueeze(input_values, axes1)
        {chain}
        logits = Transpose<perm = [0, 2, 1]>(x7)
    }}""",
        weights,
        {"axes1": np.array([1])},
    )


def clip_text() -> onnx.ModelProto:
    """Ten positions only, offsets added to ids, two tables for one input, and a one-hot encoded class."""
    return model(
        """clip (int32[N, L] ids, int64[N] label) => (float[N, L, 8] y, float[N, 7] z) {
        shifted = Add(ids, two)
        big = Gather<axis = 0>(big_DOT_weight, shifted)
        small = Gather<axis = 1>(small_DOT_weight, ids)
        turned = Transpose<perm = [1, 2, 0]>(small)
        s = Shape(ids)
        n = Gather<axis = 0>(s, one)
        at = Range(zero, n, one)
        p = Gather<axis = 0>(position_DOT_weight, at)
        sum = Add(big, turned)
        y = Add(sum, p)
        z = OneHot(label, seven, values)
    }""",
        {"big.weight": (1000, H), "small.weight": (H, 900), "position.weight": (10, H)},
        {"two": np.int32(2), "zero": np.int64(0), "one": np.int64(1), "seven": np.int64(7),
         "values": np.array([0, 1], np.float32)},
    )  # fmt: skip


def vit() -> onnx.ModelProto:
    """An image classifier with dynamic sizes whose 17 positions ask for 4 by 4 patches of 8 pixels."""
    return model(
        """vit (float[batch_size, num_channels, height, width] pixel_values) => (float[batch_size, 17, 8] y) {
        f = Conv<strides = [8, 8], kernel_shape = [8, 8]>(pixel_values, stem)
        flat = Reshape(f, to8)
        tokens = Transpose<perm = [0, 2, 1]>(flat)
        s = Shape(pixel_values)
        b = Slice(s, s0, s1)
        to = Concat<axis = 0>(b, rest)
        cls = Expand(class_token, to)
        all = Concat<axis = 1>(cls, tokens)
        y = Add(all, position_embeddings)
    }""",
        {"stem": (H, 3, 8, 8), "class_token": (1, 1, H), "position_embeddings": (1, 17, H)},
        {"to8": np.array([0, H, -1]), "s0": np.array([0]), "s1": np.array([1]), "rest": np.array([1, H])},
    )


def key_padding() -> onnx.ModelProto:
    """torch's mask, true where a position is left out; and a mask that is added to the scores as it is."""
    return model(
        """padded (float[batch, seq, 8] src, bool[batch, seq] padding, float[batch, 1, seq] bias_mask)
               => (float[batch, seq, 8] y) {
        p3 = Unsqueeze(padding, axes1)
        low = Where(p3, lowest, zerof)
        h = MatMul(src, w)
        kt = Transpose<perm = [0, 2, 1]>(h)
        raw = MatMul(h, kt)
        biased = Add(raw, bias_mask)
        scores = Add(biased, low)
        a = Softmax<axis = -1>(scores)
        y = MatMul(a, h)
    }""",
        {"w": (H, H)},
        {"axes1": np.array([1]), "zerof": np.float32(0), "lowest": np.float32(-np.inf)},
    )


LOOKALIKES: dict[str, Callable[[], onnx.ModelProto]] = {
    made.__name__: made
    for made in (
        bert, llama, yolo, ssd, detr, whisper_encoder, whisper_decoder, t5_decoder, ctc, wav2vec, clip_text,
        vit, key_padding,
    )
}  # fmt: skip
