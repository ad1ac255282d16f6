"""File formats of arrays: Polygraphy's JSON, .npy and .npz, safetensors."""
