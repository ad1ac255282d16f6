"""Lines that differ from Polygraphy's on purpose: in what, and the heading of the page that says why."""

DIFFERS: dict[str, tuple[str, str]] = {}
