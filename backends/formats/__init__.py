"""File formats for arrays: Polygraphy's JSON, .npy and .npz, safetensors."""
