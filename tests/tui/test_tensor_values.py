"""The values of one tensor on both sides, as text."""

import numpy as np
from rich.cells import cell_len

from layerwise._tool.debugtools.compare.tensor_values import tensor_values
from layerwise._tool.tui.presenters.numbers import index_text
from layerwise._tool.tui.presenters.tensor_values import tensor_lines
from layerwise._tool.tui.presenters.text import UNICODE, plain


def test_the_places_of_the_worst_elements_are_whole_however_many_axes_there_are() -> None:
    one = np.random.default_rng(0).standard_normal((1, 1, 12, 11, 2, 13, 100)).astype(np.float32)
    found = tensor_values(one, one + np.float32(1e-3) * np.abs(one), 0.0, 0.0)
    lines = [plain(line) for line in tensor_lines(found, ["onnxruntime cpu", "onnxruntime cuda"], 78, UNICODE)]
    places = [index_text(element.index) for element in found.worst]
    assert max(map(len, places)) > 20 and all(any(line.startswith(f"{at} ") for line in lines) for at in places)
    assert max(map(cell_len, lines)) <= 80
