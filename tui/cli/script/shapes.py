"""Shapes that a generated script has to know: a model's own, and those that are fed."""

from contextlib import suppress

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.trt.options import ProfileSpec, Shapes


def input_shapes(path: str | None) -> Shapes:
    """The shapes of a model's inputs, 1 where a size is not fixed."""
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.backends.runner import Loadable
    from layerwise._tool.backends.trt.inference.late import described

    if path is None:
        return {}
    with ModelFile(path) as model:
        inputs, _ = described(Loadable(data=model.structure_bytes()))
    return {info.name: [dim if isinstance(dim, int) else 1 for dim in info.shape or ()] for info in inputs}


def fed_profiles(feeds: FeedSpec) -> list[ProfileSpec]:
    """One profile that holds every shape that is fed; none where that is not known."""
    shapes = _fed_shapes(feeds)
    if not shapes:
        return []
    low = {name: [min(sizes) for sizes in zip(*many, strict=True)] for name, many in shapes.items()}
    high = {name: [max(sizes) for sizes in zip(*many, strict=True)] for name, many in shapes.items()}
    return [ProfileSpec(min=low, opt={name: many[0] for name, many in shapes.items()}, max=high)]


def _fed_shapes(feeds: FeedSpec) -> dict[str, list[list[int]]]:
    """The shapes that are fed, as far as options or saved inputs tell."""
    from layerwise._tool.backends.feeds.files import load_feeds

    found: dict[str, list[list[int]]] = {name: list(many) for name, many in feeds.shapes.items()}
    if not found:
        with suppress(LayerwiseError):
            for feed in (feed for path in feeds.files for feed in load_feeds(path)):
                for name, array in feed.items():
                    found.setdefault(name, []).append(list(array.shape))
    return {name: many for name, many in found.items() if len({len(shape) for shape in many}) == 1}
