"""Print the names of cuda-python's runtime module: functions with their arguments, enums with their members, numbers.

It needs no GPU. With a file's name as argument the recording is written there instead (how recorded/cuda_runtime.json
was made); only what begins with `cuda` and is a plain call, an enum or a number is kept.
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import compact


def api() -> dict[str, Any]:
    """The recording of the module that is installed."""
    import cuda.bindings
    from cuda.bindings import runtime

    found: dict[str, Any] = {"version": cuda.bindings.__version__, "functions": {}, "enums": {}, "numbers": {}}
    for name in dir(runtime):
        value = getattr(runtime, name)
        if not name.startswith("cuda"):
            continue
        if hasattr(value, "__members__"):
            found["enums"][name] = {member.name: int(member) for member in value}
        elif isinstance(value, int):
            found["numbers"][name] = value
        elif not inspect.isclass(value) and callable(value):
            found["functions"][name] = list(inspect.signature(value).parameters)
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compact.dump(api(), Path(sys.argv[1]))
    else:
        print(json.dumps(api()))
