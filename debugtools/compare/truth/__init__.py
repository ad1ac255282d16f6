"""What a layer should give: the reference's graph in FP64, a region at a time, on the inputs that a side had."""
