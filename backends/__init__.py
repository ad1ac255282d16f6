"""Runs models and moves data: models, tensors, feeds, runners, results, and jobs."""

import os

# From 1.29 on, onnxruntime reports the name of a model's file and hashes of its graph and weights to Microsoft, unless
# told not to before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
