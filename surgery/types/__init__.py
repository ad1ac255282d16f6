"""Types and shapes of tensors: inferred, measured by running, declared, and what operators allow."""
