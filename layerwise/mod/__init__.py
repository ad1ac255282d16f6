"""Importing late, and declaring what a module offers."""

from layerwise.mod.exporter import deprecate, export, export_deprecated_alias, warn_deprecated
from layerwise.mod.importer import LATEST_VERSION, autoinstall, import_from_script, lazy_import
from layerwise.mod.util import version

__all__ = [
    "LATEST_VERSION", "autoinstall", "deprecate", "export", "export_deprecated_alias", "import_from_script",
    "lazy_import", "version", "warn_deprecated",
]  # fmt: skip
