"""Ctrl-C at moments at which Python cannot raise."""

import subprocess
import sys

INTERRUPTED = """
import os, signal, weakref
from layerwise._tool.tui import __main__ as program

class Held: ...

def command(words):
    held = Held()
    watch = weakref.ref(held, lambda gone: os.kill(os.getpid(), signal.SIGINT))
    del held
    signal.pause()

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell that started us with `&`
program._dispatch = command
program.run()
"""


def test_an_interrupt_that_meets_the_end_of_an_object_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
