"""A runner around another one, for faults that a session has and its model has not."""

from typing import Any

from layerwise._tool.backends.runner import Runner


class WrappedRunner:
    """Does what the runner within does; a subclass overrides `infer`."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runner, name)

    def __enter__(self) -> "WrappedRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()
