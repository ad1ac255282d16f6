"""`layerwise bench`: how fast a model runs, in our words and in trtexec's."""

from tui.cli.bench.command import fill_bench, run_bench

__all__ = ["fill_bench", "run_bench"]
