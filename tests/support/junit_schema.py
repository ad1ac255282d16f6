"""A checker of JUnit files, driven by the schema of Jenkins' xunit plugin (tests/data/schemas/junit-10.xsd, MIT).

It knows what that schema uses: elements, their attributes, children in any number, text where it is mixed.
"""

from functools import cache
from pathlib import Path
from xml.etree import ElementTree

_XSD = Path(__file__).parents[1] / "data" / "schemas" / "junit-10.xsd"
_X = "{http://www.w3.org/2001/XMLSchema}"


@cache
def _declared() -> dict[str, ElementTree.Element]:
    return {element.attrib["name"]: element for element in ElementTree.parse(_XSD).getroot().findall(f"{_X}element")}


def problems(text: str) -> list[str]:
    """What of a JUnit document the schema does not allow. ParseError where it is no XML."""
    root = ElementTree.fromstring(text)
    return list(_element(root)) if root.tag in ("testsuites", "testsuite") else [f"{root.tag} is no root"]


def _element(node: ElementTree.Element) -> "list[str]":
    declared = _declared().get(node.tag)
    if declared is None:
        return [f"{node.tag} is no element"]
    kind = declared.find(f"{_X}complexType")
    if kind is None:  # of text alone
        return [f"{node.tag} has children or attributes"] if len(node) or node.attrib else []
    attributes = {each.attrib["name"]: each for each in kind.findall(f"{_X}attribute")}
    children = {each.attrib["ref"] for each in kind.iter(f"{_X}element") if "ref" in each.attrib}
    found = [f"{node.tag} has no attribute {name}" for name in node.attrib if name not in attributes]
    found += [f"{node.tag} lacks {name}" for name, each in attributes.items()
              if each.get("use") == "required" and name not in node.attrib]  # fmt: skip
    found += [f"{child.tag} in {node.tag}" for child in node if child.tag not in children]
    if kind.get("mixed") != "true" and (node.text or "").strip():
        found.append(f"text in {node.tag}")
    return found + [text for child in node for text in _element(child)]
