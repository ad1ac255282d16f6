"""Small models that take the inputs of well-known exports, with the operators that decide what may be fed."""

from collections.abc import Callable

import numpy as np
import onnx
from support.lookalikes_signals import ctc, detr, ssd, vit, wav2vec, whisper_encoder, yolo
from support.onnx_text import H, model


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
