"""Nodes of an edited graph as rows: what is new, changed or going has a sign before it."""

from layerwise._tool.tui.presenters.text import Line, plain

SIGN = 2
ROLES = {"-": "bad", "+": "good", "~": "warn"}


def signed_row(sign: str, row: Line) -> Line:
    """`row` with its sign in front; a row that differs is one run of one colour."""
    if sign == " ":
        return [("  ", ""), *row]
    return [(f"{sign} {plain(row)}", ROLES[sign])]
