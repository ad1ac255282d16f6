"""Scripts of the user are loaded whatever the rest of the process does meanwhile."""

import sys
from itertools import count
from pathlib import Path

import pytest

from layerwise._tool.backends.scripts import load_function


def test_a_script_is_loaded_while_other_threads_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads enter folders into Python's cache of importers between any two calls of the one that loads."""
    script = tmp_path / "loader.py"
    script.write_text("import beside\n\ndef load():\n    return beside.VALUE\n")
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    cache = dict(sys.path_importer_cache)
    monkeypatch.setattr(sys, "path_importer_cache", cache)
    monkeypatch.setattr(sys, "path", list(sys.path))
    numbers = count()
    sys.setprofile(lambda *event: cache.setdefault(f"/elsewhere/{next(numbers)}"))
    try:
        load = load_function(script, "load")
    finally:
        sys.setprofile(None)
    assert load() == 3
