"""All benchmarks beside the real Polygraphy, one after another: `python -m benchmarks [NAME…]`."""

import runpy
import sys

NAMES = (
    *("startup", "inspect_model", "metrics", "jobs_startup", "app", "compare", "lint", "visual", "edits"),
    *("surgery_app", "keys"),
)


def main() -> None:
    wanted = sys.argv[1:] or list(NAMES)
    for name in wanted:
        if name not in NAMES:
            sys.exit(f"no benchmark {name!r}: there are {', '.join(NAMES)}")
    for name in wanted:
        print(f"\n== {name}", flush=True)
        sys.argv = [f"benchmarks/{name}.py"]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
