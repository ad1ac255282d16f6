"""Comparing runners tensor by tensor: the job, and in its subpackages the steps of a comparison."""
