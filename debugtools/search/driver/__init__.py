"""Searches as jobs: candidates made, judged, written down, resumed."""
