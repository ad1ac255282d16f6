"""Small models that take images and sound as well-known exports do."""

import numpy as np
import onnx
from support.onnx_text import H, model


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
