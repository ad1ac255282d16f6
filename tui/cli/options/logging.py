"""Options of every command: what is logged, and where."""

from layerwise._tool.tui.cli.options.option import Group, Option, flag, many

LOGGING = Group(
    "Logging",
    Option("-v", "--verbose", action="count", default=0, help="say more; repeat for still more"),
    Option("-q", "--quiet", action="count", default=0, help="say less; repeat for still less"),
    Option("--extra-verbose", own=True, action="count", default=0, help="the same as -vv"),
    many("--verbosity", metavar="[PATH:]LEVEL", default=None,
         help="ULTRA_VERBOSE, SUPER_VERBOSE, EXTRA_VERBOSE, VERBOSE, INFO, START, FINISH, WARNING, ERROR or CRITICAL, "
         "for everything or for a part (backend, comparator, tools)"),
    flag("--silent", help="print nothing but fatal errors"),
    many("--log-format", choices=("timestamp", "line-info", "no-colors"), help="what each line carries"),
    Option("--log-file", metavar="PATH", help="write the log to this file too"),
)  # fmt: skip
