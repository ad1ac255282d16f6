"""What to time, as a plain value: what the command line and the app submit as a job."""

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec


class PlanSpec(Spec, frozen=True):
    """How long to run. Both of each pair must be reached: warm_up (seconds) and warm_up_runs, duration (seconds) and
    iterations (per stream). idle: seconds between two runs.
    """

    warm_up: float = 0.2
    warm_up_runs: int = 0
    duration: float = 3.0
    iterations: int = 10
    streams: int = 1
    idle: float = 0.0


class ExportSpec(Spec, frozen=True):
    """Files to write. times, profile, layers, output: trtexec's JSON (times and profile: CSV if the name ends in .csv).

    report: everything measured, JSON or CSV.
    """

    times: str | None = None
    profile: str | None = None
    layers: str | None = None
    output: str | None = None
    report: str | None = None


class BenchSpec(Spec, frozen=True):
    """One bench: each runner at each batch size; runners alternate, so that drift affects all alike.

    batches: sizes for the inputs' first dimension, if dynamic; none: shapes of the feeds.
    average_runs: runs per line of averages in the log; 0: no such lines.
    raw_inputs: input name -> a file of raw values. transfers: inputs and outputs are copied in every run.
    profile, layers: measure each layer in separate runs; list the layers. against: a report or trtexec's times, the
    reference that all runners are compared with. skip_inference: open (build) only.
    """

    model: str
    model_options: ModelOptions = ModelOptions()
    runners: list[RunnerSpec] = []
    feeds: FeedSpec = FeedSpec()
    raw_inputs: dict[str, str] = {}
    plan: PlanSpec = PlanSpec()
    batches: list[int] = []
    transfers: bool = True
    cuda_graph: bool = False
    percentiles: tuple[float, ...] = (90.0, 95.0, 99.0)
    average_runs: int = 0
    profile: bool = False
    layers: bool = False
    exports: ExportSpec = ExportSpec()
    against: str | None = None
    skip_inference: bool = False
