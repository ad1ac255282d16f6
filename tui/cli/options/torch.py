"""Options of PyTorch modules; they hold for every `--torch` of the line."""

from layerwise._tool.backends.torch.options import TorchOptions
from layerwise._tool.tui.cli.options.option import Group, Option, flag

TORCH = Group(
    "PyTorch",
    Option("--torch-device", own=True, field="device", default="cpu", metavar="DEVICE",
           help="cpu (the default), cuda or cuda:N"),
    flag("--torch-compile", own=True, field="compiled", help="run what torch.compile makes of the module"),
    Option("--torch-autocast", own=True, field="autocast", choices=("float16", "bfloat16"),
           help="run within torch.autocast of this type"),
    Option("--torch-mode", own=True, field="mode", choices=("given", "eval", "train"), default="given",
           help="given (the default): in the mode that the function left its modules in, with a warning where some are "
           "in training mode; eval, train: all are put into this mode"),
    plain=TorchOptions,
)  # fmt: skip
