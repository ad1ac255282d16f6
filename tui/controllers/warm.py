"""The warm worker of the open model: one interactive job that answers small requests without a new process each."""

import asyncio
import os
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.spec import JobSpec


class WarmWorker:
    """Starts the worker at the first request, and again after a crash or its idle end."""

    def __init__(self, client: JobClient, model: str) -> None:
        self._client = client
        self._model = model
        self._job: int | None = None
        self._starting = asyncio.Lock()

    async def ask(self, request: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises LayerwiseError with the worker's message."""
        job = await asyncio.shield(self._alive())  # who gives up must not leave a worker that nobody knows
        return await self._client.ask(job, request, params)

    async def _alive(self) -> int:
        async with self._starting:
            if self._job is None or (await self._client.view(self._job)).final:
                self._job = await self._client.submit(
                    JobSpec(
                        action="interactive", title=f"interactive: {self._model}", cpus=0, source="tui",
                        params={"model": self._model, "beside": os.getpid()}, command=["layerwise", self._model],
                    )
                )  # fmt: skip
            return self._job

    async def stop(self) -> None:
        """End the worker, if it lives."""
        if self._job is not None:
            try:
                await self._client.cancel(self._job)
            except LayerwiseError:
                self._job = None
