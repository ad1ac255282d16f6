"""What runs models and moves data: models, tensors, feeds, runners, results, and the jobs that all work is."""

import os

# From 1.29 on onnxruntime tells its makers the name of a model's file and hashes of its graph and weights, unless it is
# told not to before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
