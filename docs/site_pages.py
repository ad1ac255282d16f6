"""Pages of the web site that are made from other files of the repository, and links to them. A hook of mkdocs.yml.

A page that loads something from another host ends the build.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LOADS = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*""")
_FOLDERS = {"screens": "pictures.md", "evidence": "evidence.md", "../examples": "examples.md"}


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that are no files of docs/."""
    from mkdocs.structure.files import File

    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to folders lead to the pages that list them."""
    return re.sub(r"\]\(([^)#]+?)/?\)", lambda link: f"]({_FOLDERS.get(link[1], link[1])})", markdown)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Refuse a page that is not complete without a network."""
    from mkdocs.exceptions import PluginError

    found = _LOADS.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}>")
    return output


def pages() -> Iterator[tuple[str, str]]:
    """Names and texts of the pages that are made here."""
    yield "index.md", _from_root("README.md")
    yield "contributing.md", _from_root("CONTRIBUTING.md")
    pictures = sorted((ROOT / "docs" / "screens").glob("*-120x40.svg"))
    shown = (f"## {path.stem.removesuffix('-120x40')}\n\n![{path.stem}](screens/{path.name})\n" for path in pictures)
    yield "pictures.md", "# Pictures of the app\n\nAt 120 columns and 40 rows, on the demo pair.\n\n" + "\n".join(shown)
    yield "options.md", options_page()
    raw = sorted((ROOT / "docs" / "evidence").glob("*.txt"))
    yield "evidence.md", "# Raw output\n\n" + "".join(f"- [{path.name}](evidence/{path.name})\n" for path in raw)
    scripts = sorted((ROOT / "examples").glob("*.py"))
    texts = (f"## {path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n" for path in scripts)
    yield "examples.md", "# Examples in Python\n\n" + "\n".join(texts)


def options_page() -> str:
    """The options of `layerwise run`, group by group, from their declarations."""
    from layerwise._tool.tui.cli.options.option import options_of
    from layerwise._tool.tui.cli.request.parser import RUN

    text = "# Options of run\n\nMade from the declarations in `tui/cli/options/`; `layerwise run --help` prints them.\n"
    for group in RUN:
        text += f"\n## {group.title}\n\n{group.description or ''}\n\n"
        text += "| option | value | meaning | Run form | in a generated script |\n|---|---|---|---|---|\n"
        for option in options_of(group):
            flags = ", ".join(f"`{flag}`" for flag in option.flags)
            value = " ".join(option.settings.get("choices", ())) or option.settings.get("metavar") or ""
            script = "" if option.script in ("", "*") else f"`{option.script}`"
            cells = (flags, value, option.settings.get("help", ""), option.form.label if option.form else "", script)
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def _from_root(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md)", "](contributing.md)")
