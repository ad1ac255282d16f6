"""Comparisons of runners tensor by tensor: the job, and in its packages the steps of one comparison."""
