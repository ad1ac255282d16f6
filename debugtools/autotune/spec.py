"""Which plugins to try, how, and where the result goes, as plain values."""

from typing import Literal

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, Spec

Mode = Literal["greedy", "exhaustive"]


class AutotuneSpec(Spec, frozen=True):
    """One search for the fastest combination of replacements.

    plugin_dir: the folder of pattern files; include, exclude: plugins by name. python_plugins: scripts that register
    plugins when they are run; plugin_libraries: shared libraries that do. load_config: matches, not searched for then;
    save_config: where they are written. match_only: nothing is built.
    mode: greedy tries each replacement once, on top of those kept so far; exhaustive tries all combinations until one
    is faster than the model by more than `threshold` (a fraction). most: combinations tried, the model itself included.
    timing_cache: of TensorRT, read if it exists and written; None: one of this search's own; use_timing_cache: False
    for none. output: the model with the fastest combination; save_report: text.
    """

    model: str
    plugin_dir: str
    output: str
    model_options: ModelOptions = ModelOptions()
    feeds: FeedSpec = FeedSpec()
    include: list[str] = []
    exclude: list[str] = []
    python_plugins: list[str] = []
    plugin_libraries: list[str] = []
    load_config: str | None = None
    save_config: str | None = None
    match_only: bool = False
    mode: Mode = "greedy"
    most: int = 1000
    threshold: float = 0.1
    timing_cache: str | None = None
    use_timing_cache: bool = True
    save_report: str | None = None
    overwrite: bool = False
