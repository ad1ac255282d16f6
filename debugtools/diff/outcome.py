"""What a comparison of two files comes to: a verdict, a summary, and differences in sections."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TAB = "    "


@dataclass(frozen=True)
class Difference:
    """One difference: text for people (already safe to show, may have several lines) and fields for machines."""

    text: str
    fields: dict[str, Any]


@dataclass
class Section:
    """Differences of one kind. cosmetic: they do not make the two sides unequal."""

    title: str
    key: str
    items: list[Difference] = field(default_factory=list)
    cosmetic: bool = False

    def add(self, text: str, **fields: Any) -> None:
        """Note a difference."""
        self.items.append(Difference(text, fields))


@dataclass
class DiffOutcome:
    """The result of a comparison. kind: what was compared (results, inputs, models, tactics, json, bytes, folders)."""

    kind: str
    summary: str = ""
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str, key: str, *, cosmetic: bool = False) -> Section:
        """A new section, at the end."""
        self.sections.append(Section(title, key, cosmetic=cosmetic))
        return self.sections[-1]

    def nothing_compared(self, why: str) -> None:
        """Say that there was nothing to compare: the two are not taken for equal."""
        self.section("nothing was compared", "nothing_compared").add(why, why=why)
        self.summary = f"nothing was compared: {why}"

    @property
    def equal(self) -> bool:
        """True if nothing but cosmetics differs."""
        return not any(section.items for section in self.sections if not section.cosmetic)

    def lines(self, limit: int | None) -> Iterator[str]:
        """Yield the sections as indented lines, at most `limit` differences of each."""
        for section in self.sections:
            if not section.items:
                continue
            yield f"{section.title}: {len(section.items)}"
            for item in section.items[:limit]:
                yield from (f"{TAB}{line}" for line in item.text.splitlines())
            if limit is not None and len(section.items) > limit:
                yield f"{TAB}… and {len(section.items) - limit} more (--all)"

    def to_json(self) -> dict[str, Any]:
        """Kind, verdict, summary and all differences, by section."""
        found = {section.key: [item.fields for item in section.items] for section in self.sections}
        return {"kind": self.kind, "equal": self.equal, "summary": self.summary, "differences": found}
