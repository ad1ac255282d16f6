"""The words of the command line and where each is implemented; a module is imported only when its word is used."""

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown


class Leaf:
    """A word that does something.

    `module`, relative to the folder of this one, holds `fill_<name>(parser)` and `run_<name>(args, log) -> int`.
    A `timed` one has lines RUNNING and PASSED or FAILED around its output. ahead: it runs models in a job, whose worker
    is started before the options are understood.
    """

    __slots__ = ("ahead", "module", "name", "summary", "timed")  # a dataclass takes a fifth of the time of `--help`

    def __init__(self, module: str, name: str, summary: str, timed: bool = False, ahead: bool = False) -> None:
        self.module, self.name, self.summary, self.timed, self.ahead = module, name, summary, timed, ahead


class Branch:
    """A word that groups others; `default` is what it does alone."""

    __slots__ = ("default", "leaves", "summary")

    def __init__(self, summary: str, leaves: dict[str, Leaf], default: str | None = None) -> None:
        self.summary, self.leaves, self.default = summary, leaves, default


CHECK = ("--check", "--check-inference")  # the options that all words after them belong to
COMMANDS: dict[str, Leaf | Branch] = {
    "run": Leaf(".run.command", "run", "run a model on several backends and compare their outputs", True, ahead=True),
    "convert": Leaf(".convert.command", "convert", "a model in FP16, bfloat16, INT8 or another opset"),
    "inspect": Branch(
        "show what is in a file",
        {
            "model": Leaf(".inspect.command", "model", "inputs, outputs, layers, attributes and weights of a model"),
            "data": Leaf(".inspect.command", "data", "statistics and values of saved inputs or outputs"),
            "diff": Leaf(".inspect.diff", "diff", "what differs between two files: results, models, replays, any"),
            "capability": Leaf(
                ".inspect.capability", "capability", "which parts of a model TensorRT takes, and why not others"
            ),
            "sparsity": Leaf(".inspect.sparsity", "sparsity", "which weights are 2:4 sparse", timed=True),
            "quantization": Leaf(
                ".inspect.quantization", "quantization", "what is quantised, and how well it holds its float original"
            ),
            "tactics": Leaf(".inspect.diff", "tactics", "a tactic replay as text"),
            "diff-tactics": Leaf(".inspect.diff", "diff_tactics", "which tactics only bad TensorRT builds have"),
        },
    ),
    "check": Branch(
        "check files",
        {
            "lint": Leaf(".check.lint", "lint", "is a model sound, and which of its nodes are at fault", timed=True),
            "compatibility": Leaf(
                ".check.compatibility",
                "compatibility",
                "which backends take a model, operator by operator",
                timed=True,
            ),
            "invariants": Leaf(
                ".check.invariants",
                "invariants",
                "does a row depend on the others of its batch, on padding, on threads: no reference needed",
                timed=True,
            ),
            "install": Leaf(".check.install", "install", "what is installed, and which extra brings the rest"),
            "accuracy": Leaf(
                ".check.accuracy",
                "accuracy",
                "hold saved accuracy results against other thresholds",
                timed=True,
            ),
        },
    ),
    "debug": Branch(
        "find which layer is wrong, and make the failing case small",
        {
            "locate": Leaf(
                ".debug.locate",
                "locate",
                "which node is wrong, from one pass over both sides",
                timed=True,
                ahead=True,
            ),
            "reduce": Leaf(".debug.reduce", "reduce", "make a failing model as small as it gets", True, ahead=True),
            "bisect": Leaf(".debug.bisect", "bisect", "find the first node after which it fails", True, ahead=True),
            "precision": Leaf(
                ".debug.precision",
                "precision",
                "which nodes must stay in FP32, the others in FP16, INT8, FP8",
                timed=True,
                ahead=True,
            ),
            "repeat": Leaf(".debug.repeat", "repeat", "try the same again and again, and count", timed=True),
            "build": Leaf(".debug.build", "build", "build an engine again and again: bad tactics", timed=True),
            "bundle": Leaf(".debug.bundle", "bundle", "what a search found, as a folder that fails on its own"),
            "diff-tactics": Leaf(".inspect.diff", "debug_diff_tactics", "layers whose tactic differs between builds"),
        },
    ),
    "surgeon": Branch(
        "change a model: extract, fold, prune, edit, replay",
        {
            "extract": Leaf(".surgeon.extract", "extract", "a part of a model as a model of its own", timed=True),
            "sanitize": Leaf(
                ".surgeon.sanitize", "sanitize", "fold constants, clean up, change input shapes", timed=True
            ),
            "edit": Leaf(".surgeon.edit", "edit", "delete, insert, replace, rename, …: any edits", timed=True),
            "replay": Leaf(".surgeon.edit", "replay", "the edits of a log made on another model", timed=True),
            "insert": Leaf(".surgeon.insert", "insert", "one node in the place of what lies between tensors"),
            "prune": Leaf(".surgeon.prune", "prune", "2:4 sparse weights; nodes of some types left out", True),
            "weight-strip": Leaf(".surgeon.weights", "weight_strip", "no values in the weights", timed=True),
            "weight-reconstruct": Leaf(
                ".surgeon.weights", "weight_reconstruct", "random values where weights were stripped", timed=True
            ),
        },
    ),
    "plugin": Branch(
        "subgraphs that plugins can take the place of",
        {
            "list": Leaf(".plugin", "list", "which plugins of a folder match, and how often"),
            "match": Leaf(".plugin", "match", "where they match, as a file to edit"),
            "replace": Leaf(".plugin", "replace", "put the plugins' nodes in place, as that file says"),
            "autotune": Leaf(".plugin", "autotune", "put in the plugins that make it faster, timed on TensorRT"),
        },
    ),
    "template": Branch(
        "scripts to be finished by hand",
        {
            "onnx-gs": Leaf(".template.command", "onnx_gs", "edit a model with onnx-graphsurgeon"),
            "trt-network": Leaf(".template.trt", "trt_network", "make or change a network by TensorRT's API"),
            "trt-config": Leaf(".template.trt", "trt_config", "configure a build by TensorRT's API"),
            "shard-hints": Leaf(".sharding", "shard_hints", "hints for splitting a model over GPUs"),
        },
    ),
    "multi-device": Branch(
        "models on several GPUs",
        {"shard": Leaf(".sharding", "shard", "split a model over GPUs, as hints say")},
    ),
    "bench": Leaf(".bench.command", "bench", "how fast a model runs, layer by layer; trtexec's options", True),
    "baseline": Branch(
        "the errors of all layers, kept in a file",
        {
            "accept": Leaf(".baseline.command", "accept", "run a comparison and keep the error of every layer", True),
            "check": Leaf(".baseline.command", "check", "has a layer grown beyond its rounding since then", True),
        },
    ),
    "triage": Leaf(".triage", "triage", "the accuracy flowchart: what kind of fault it is, with a report"),
    "matrix": Leaf(
        ".matrix.command", "matrix", "models × sides × feeds × actions, each a job; here or on a cluster", True
    ),
    "data": Branch(
        "combine saved inputs and outputs",
        {
            "concat": Leaf(".data", "concat", "join the iterations of several files of one kind"),
            "merge": Leaf(".data", "merge", "join the tensors of inputs and outputs into one set of inputs"),
        },
    ),
    "jobs": Branch(
        "the jobs of this workspace",
        {
            "list": Leaf(".jobs.command", "list", "all jobs, their state and their disk use"),
            "show": Leaf(".jobs.command", "show", "one job: what it does, how far it is, why it ended"),
            "logs": Leaf(".jobs.command", "logs", "what a job printed, and what it prints now (-f)"),
            "cancel": Leaf(".jobs.command", "cancel", "stop jobs"),
            "retry": Leaf(".jobs.command", "retry", "run a job again where it stopped"),
            "prune": Leaf(".jobs.command", "prune", "remove finished jobs and their files"),
        },
        default="list",
    ),
    "attach": Leaf(".jobs.attach", "attach", "follow a job, from its start"),
    "doctor": Leaf(".doctor.command", "doctor", "what works here, what does not, and what mends it"),
    "where": Leaf(".doctor.command", "where", "where workspace, settings and caches are"),
    "completion": Leaf(".completion.command", "completion", "completion of these commands for bash, zsh or fish"),
    "man": Leaf(".completion.command", "man", "the manual page, for man(1)"),
    "demo": Leaf(".demo", "demo", "compare a small transformer with its FP16 form, layer by layer"),
}


def moved(options: list[str], words: list[str]) -> list[str]:
    """The words with options behind them, but before a check's command, which takes all that follows."""
    end = next((number for number, word in enumerate(words) if word in CHECK), len(words))
    return [*words[:end], *options, *words[end:]]


def overview() -> str:
    """The text of `layerwise --help`."""
    lines = [
        "usage: layerwise [MODEL | COMMAND …]",
        "",
        "A terminal workbench for debugging neural-network inference: which layer is wrong, and why.",
        "",
        "  layerwise MODEL          open the model in the full-screen app",
        "  layerwise                open the app to choose a model (on a terminal)",
        "",
        "commands:",
    ]
    for word, entry in COMMANDS.items():
        lines.append(f"  {word:<10} {entry.summary}")
        if isinstance(entry, Branch):
            lines += [f"    {leaf:<12} {item.summary}" for leaf, item in entry.leaves.items()]
    lines += [
        "",
        "options:",
        "  -h, --help     this text; `layerwise COMMAND --help` for the options of a command",
    ]
    lines += [
        "  -V, --version  print the version",
        "  --slow-line    open the app with fewer frames and colours: layerwise --slow-line [MODEL]",
        "",
        "Option names are Polygraphy's. NO_COLOR, LAYERWISE_HOME and LAYERWISE_MEMORY are honoured.",
    ]
    return "\n".join(lines)


def branch_overview(word: str, branch: Branch) -> str:
    """The text of `layerwise WORD --help` for a word that groups others."""
    lines = [f"usage: layerwise {word} {{{','.join(branch.leaves)}}} …", "", branch.summary, ""]
    return "\n".join(lines + [f"  {leaf:<12} {item.summary}" for leaf, item in branch.leaves.items()])


def unknown(word: str, known: list[str], prefix: str = "layerwise") -> UsageError:
    """The error for a word that is neither a command nor a file, with the nearest commands."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=3, cutoff=0.5) or [
        name for name in known if word and name.startswith(word[0])
    ]
    hint = (
        f"Did you mean {' or '.join(f'`{prefix} {name}`' for name in near)}?"
        if near
        else f"Commands: {', '.join(known)}."
    )
    return UsageError(f"'{shown(word, 80)}' is neither a command nor a file. {hint}")
