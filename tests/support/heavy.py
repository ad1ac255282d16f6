"""Heavy models, made once a test session."""

from benchmarks.models import NAMES, heavy_model, light_model, make_heavy

__all__ = ["NAMES", "heavy_model", "light_model", "make_heavy"]
