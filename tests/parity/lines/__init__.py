"""The command lines that both programs are given, by the words before them."""

from parity.lines import change, look, run, search

TABLE = {
    "run": run.RUN + run.RUN_TRT,
    "check accuracy": run.ACCURACY,
    "inspect model": look.MODEL,
    "inspect data": look.DATA,
    "inspect tactics": look.TACTICS,
    "inspect diff-tactics": look.DIFF_TACTICS,
    "inspect sparsity": look.SPARSITY,
    "inspect capability": look.CAPABILITY,
    "check lint": look.LINT,
    "data concat": look.CONCAT,
    "data merge": look.MERGE,
    "template trt-network": look.TRT_NETWORK,
    "template trt-config": look.TRT_CONFIG,
    "template onnx-gs": look.ONNX_GS,
    "template shard-hints": look.SHARD_HINTS,
    "multi-device shard": look.SHARD,
    "surgeon extract": change.EXTRACT,
    "surgeon sanitize": change.SANITIZE,
    "surgeon insert": change.INSERT,
    "surgeon prune": change.PRUNE,
    "surgeon weight-strip": change.STRIP,
    "surgeon weight-reconstruct": change.RECONSTRUCT,
    "convert": change.CONVERT,
    "plugin match": change.MATCH,
    "plugin list": change.LIST,
    "plugin replace": change.REPLACE,
    "plugin autotune": change.AUTOTUNE,
    "debug reduce": search.REDUCE,
    "debug repeat": search.REPEAT,
    "debug build": search.BUILD,
    "debug precision": search.PRECISION,
}


def lines() -> list[str]:
    """Every line whole."""
    return [f"{words} {line}" for words, text in TABLE.items() for line in text.strip().splitlines()]
