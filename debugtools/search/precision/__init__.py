"""Which nodes must stay in FP32 for a model to pass in FP16 or bfloat16."""
