"""Write docs/keys.md from the registry of commands: `python docs/make_keys.py`."""

from pathlib import Path

from layerwise._tool.tui import workbench
from layerwise._tool.tui.presenters.keys_page import keys_page

if __name__ == "__main__":
    assert workbench.PAGES  # its screens fill the registry
    Path(__file__).with_name("keys.md").write_text(keys_page(), encoding="utf-8")
