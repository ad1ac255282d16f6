"""A dask cluster of processes that may be killed; and a proxy that counts the bytes of its scheduler."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Cluster:
    """A scheduler at a port of its own and workers of one thread; `tend` starts again what has ended."""

    def __init__(self, workers: int, log: Path, env: dict[str, str] | None = None, through: int = 0) -> None:
        """through: the port by which workers reach the scheduler, 0 for its own."""
        self.port = free_port()
        self._log, self._env = log.open("ab"), {**os.environ, **(env or {})}
        self._through = through or self.port
        self._count = workers
        self.scheduler = self._start_scheduler()
        self.workers = [self._start_worker() for _ in range(workers)]

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._through}"

    def _start_scheduler(self) -> "subprocess.Popen[bytes]":
        return self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")

    def _start_worker(self) -> "subprocess.Popen[bytes]":
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0", "--death-timeout", "60"]
        return self._start("dask_worker", self.address, *words)

    def _start(self, module: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, env=self._env, start_new_session=True)

    def tend(self) -> None:
        """Start again the scheduler and the workers that have ended."""
        if self.scheduler.poll() is not None:
            self.scheduler = self._start_scheduler()
        self.workers = [one if one.poll() is None else self._start_worker() for one in self.workers]

    def kill_worker(self, rng: random.Random) -> None:
        _kill(rng.choice(self.workers))

    def kill_scheduler(self) -> None:
        _kill(self.scheduler)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            _kill(process)
        self._log.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


class Proxy:
    """Hands on connections to a port, and counts what goes through in both directions."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.to = 0
        self.bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                far = self._reach()
            except OSError:
                return
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    def _reach(self) -> socket.socket:
        deadline = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                self.bytes += len(data)
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            end.close()

    def close(self) -> None:
        self._server.close()
