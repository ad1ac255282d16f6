"""What can be wrong in a model. A plant changes node `i` of a draft and says what it did, or None if it does not fit.

Whether a plant counts is not its own business: the corpus runs the model.
"""

from collections.abc import Callable, Mapping

import numpy as np
from support.faults.draft import Draft, Fault
from support.faults.plants import attributes, constants, operators, precision, shapes

Plant = Callable[[Draft, int, np.random.Generator], Fault | None]

PLANTS: Mapping[str, Plant] = {
    "constant element": constants.element,
    "constant scaled": constants.scaled,
    "attribute": attributes.attribute,
    "axis": attributes.axis,
    "window": attributes.window,
    "fp16 rounding": precision.rounding,
    "fp16 overflow": precision.overflow,
    "fp16 layer norm": precision.layer_norm,
    "fp16 softmax": precision.softmax,
    "fp16 reduce": precision.mean,
    "fp16 pow": precision.power,
    "bad cast": precision.bad_cast,
    "nan": operators.not_a_number,
    "swapped inputs": operators.swapped,
    "other operator": operators.other,
    "scaled node": operators.scaled,
    "transpose": shapes.transpose,
    "reshape order": shapes.reshape,
    "slice or gather": shapes.pick,
    "concat or split order": shapes.order,
}
