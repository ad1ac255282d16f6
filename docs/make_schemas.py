"""Writes the schemas of all `--json` documents to docs/schemas/: `python docs/make_schemas.py`."""

import json
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.tui.cli.documents.base import Text
from layerwise._tool.tui.cli.documents.table import ANYWHERE, DOCUMENTS
from layerwise._tool.tui.cli.json_output import schema_of
from layerwise._tool.tui.cli.leaf import fill_parser
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf

FOLDER = Path(__file__).parent / "schemas"
_NOT_FINITE = {"enum": ["inf", "-inf", "nan"]}
_HEAD = "https://json-schema.org/draft/2020-12/schema"


def leaves() -> dict[str, Leaf]:
    """All commands by their words."""
    found: dict[str, Leaf] = {}
    for word, entry in COMMANDS.items():
        if isinstance(entry, Branch):
            found |= {f"{word} {name}": leaf for name, leaf in entry.leaves.items()}
        else:
            found[word] = entry
    return found


def has_json(words: str, leaf: Leaf) -> bool:
    """Whether a command has `--json`."""
    parser = Parser(f"layerwise {words}")
    fill_parser(parser, leaf)
    return any("--json" in action.option_strings for action in parser._actions)


def schemas() -> dict[str, str]:
    """File name -> text, of every command with `--json` and of what may come in place of its document."""
    types = {words: DOCUMENTS.get(words, Text) for words, leaf in leaves().items() if has_json(words, leaf)}
    return {f"{words.replace(' ', '-')}.json": schema(words, kind) for words, kind in {**types, **ANYWHERE}.items()}


def schema(words: str, kind: Any) -> str:
    """The JSON schema of one document."""
    made = _with_words(msgspec.json.schema(kind), schema_of(words))
    title = f"layerwise {words} --json" if words not in ANYWHERE else f"{words}, in place of a command's document"
    return json.dumps({"$schema": _HEAD, "$id": schema_of(words), "title": title, **made}, indent=1) + "\n"


def _with_words(value: Any, name: str, *, key: str = "") -> Any:
    """The same where a number may be a word for what JSON lacks, and `schema` is the name of this one."""
    if isinstance(value, list):
        return [_with_words(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    if value == {"type": "number"} or (value.get("type") == "number" and value.keys() <= {"type", "default"}):
        return {"anyOf": [{"type": "number"}, _NOT_FINITE], **{k: v for k, v in value.items() if k == "default"}}
    found = {inner: _with_words(each, name, key=inner) for inner, each in value.items()}
    if key == "schema" and value.get("type") == "string":
        return {"const": name}
    if "anyOf" in found and {"type": "number"} in value["anyOf"]:
        found["anyOf"] = [each for each in value["anyOf"] if each != {"type": "number"}]
        found["anyOf"] = [_with_words(each, name) for each in found["anyOf"]] + [{"type": "number"}, _NOT_FINITE]
    return found


def main() -> None:
    """Write what changed, and remove what no command has any more."""
    FOLDER.mkdir(exist_ok=True)
    made = schemas()
    for path in FOLDER.glob("*.json"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
