"""Types and shapes of tensors: inferred, found by running, declared, and what operators allow."""
