"""`--report FILE`, of every command that judges something: declared here, once."""

from layerwise._tool.tui.cli.options.option import Group, Option

REPORT = Option(
    "--report", own=True, dest="report_files", action="append", default=[], metavar="FILE",
    help="write what was found in the form that the name ends in: .xml (JUnit), .sarif, .md (with tables, for "
    "$GITHUB_STEP_SUMMARY) or .html; may be repeated",
)  # fmt: skip
REPORTS = Group("Reports for other tools", REPORT)
