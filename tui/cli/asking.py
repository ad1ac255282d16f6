"""A job's question on the command line: put to whoever sits at the terminal, only told where there is none."""

import asyncio
import os
import sys
import termios
from contextlib import suppress

from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.progress import Bar
from layerwise._tool.tui.presenters.questions import body_lines
from layerwise._tool.tui.presenters.text import plain
from layerwise._tool.tui.state.questions import Question

_CELLS = 1000


class Asker:
    """Prompts with a question's choices; `bar` stands aside meanwhile."""

    def __init__(self, log: Log, bar: Bar) -> None:
        self._log = log
        self._bar = bar

    async def ask(self, question: Question) -> str | None:
        """The answer, None where nobody can give one. Cancel it when the question is answered elsewhere."""
        first, *rest = (plain(line) for line in body_lines(question, _CELLS))
        self._log.info(first)
        for line in rest:
            self._log.continued(f"    {line}")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            words = f" ({', '.join(shown(word, 40) for word in question.words)})" if question.words else ""
            self._log.info(f"Answer{words} on a terminal with: layerwise attach {question.job}, or in the app")
            return None
        with self._bar.hidden():
            return await self._prompt(question)

    async def _prompt(self, question: Question) -> str | None:
        words = "   ".join(f"{key} {shown(word, 40)}".strip() for key, word in question.choices())
        try:
            while True:
                put(f"{words or 'your answer'} > ", end="")
                text = await _line()
                if text is None:
                    put(f"the question waits: layerwise attach {question.job}")
                    return None
                word = question.answer(text.strip())
                if word is not None:
                    return word
        except asyncio.CancelledError as error:
            put(*error.args)
            raise


async def _line() -> str | None:
    """The next line typed, without blocking the loop; None at the end of the input."""
    stream = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    read: asyncio.Future[bytes] = loop.create_future()
    loop.add_reader(stream, lambda: None if read.done() else read.set_result(read_input(stream)))
    try:
        data = await read
    except asyncio.CancelledError:
        with suppress(termios.error):
            termios.tcflush(stream, termios.TCIFLUSH)
        raise
    finally:
        loop.remove_reader(stream)
    return data.decode(errors="replace") if data else None


def read_input(stream: int) -> bytes:
    """What was typed; b"" at the end of the input, which is also where the terminal has gone."""
    try:
        return os.read(stream, 4096)
    except OSError:
        return b""
