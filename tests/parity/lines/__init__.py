"""The command lines that both programs are given, by the words before them."""

from parity.lines import build, change, look, run, search

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


TRT_TABLE = {
    "convert": build.given("m.onnx -o e.engine {}") + build.ENGINE_ONLY,
    "debug build": build.given("m.onnx --until 1 {} --check true", build.SEARCH),
    "debug precision": build.given("m.onnx --mode bisect {} --check true", build.SEARCH + build.REPLAY),
    "inspect model": build.given("m.onnx --display-as trt {}", build.SHOWN),
}


def lines() -> list[str]:
    """Every line whole."""
    tables = (TABLE, TRT_TABLE)
    return [
        f"{words} {line}" for table in tables for words, text in table.items() for line in text.strip().splitlines()
    ]


def logged(only: str = "") -> list[str]:
    """The first line of every command with the options that each has: help, and those of logging."""
    found = []
    for words, text in TABLE.items():
        first = text.strip().splitlines()[0]
        if only in ("", words):
            found += [
                f"{words} --help",
                f"{words} {first.partition(' --check ')[0]} -v -q --verbosity info --log-format no-colors --log-file l.log"
                f" {' '.join(first.partition(' --check ')[1:])}".strip(),
                f"{words} --silent {first}",
            ]
    return found
