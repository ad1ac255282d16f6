"""The page: one HTML file with inline style, script and data, which makes no network requests.

The data are compressed JSON in base64, so nothing in them can end an element or start one. A Content-Security-Policy
allows the page's own style and script by their hashes and nothing else: no request, no other script, no form.
"""

import base64
import gzip
import hashlib
import json
from html import escape
from pathlib import Path

from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.visual.document import document
from layerwise._tool.surgery.visual.node_results import NodeErrors

MARK = "<!doctype html><!-- a model's graph, by layerwise -->"
_FOLDER = Path(__file__).with_name("page")
_SCRIPTS = ("data.js", "folds.js", "geometry.js", "colours.js", "canvas.js", "edges.js", "overview.js", "details.js",
            "search.js", "app.js", "start.js")  # fmt: skip


def page(index: GraphIndex, title: str, errors: NodeErrors | None = None) -> str:
    """Return the page of a model. title: window title, the file's name. errors: colours the nodes."""
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    parts = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}\n}})();\n'
    shown_document = document(index, title, errors)
    allowed = f"script-src {_source(script)}; style-src {_source(style)}"
    parts_by_name = {
        "policy": f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        "title": escape(str(shown_document["title"])), "style": style, "script": script,
        "data": packed(shown_document),
    }  # fmt: skip
    return MARK + "\n" + _filled((_FOLDER / "page.html").read_text(encoding="utf-8"), parts_by_name)


def packed(value: object) -> str:
    """Return compressed JSON in base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def _source(text: str) -> str:
    """Return the policy source of an inline element with exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _filled(template: str, parts: dict[str, str]) -> str:
    """Replace {{name}} in the template; inserted text is not scanned again."""
    head, *rest = template.split("{{")
    return head + "".join(parts[name] + tail for name, tail in (piece.split("}}", 1) for piece in rest))
