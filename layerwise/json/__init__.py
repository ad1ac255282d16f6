"""Polygraphy's JSON: inputs, results and anything of dicts, lists, numbers, text, arrays and registered classes."""

from layerwise.json.serde import Decoder, Encoder, add_json_methods, from_json, load_json, save_json, to_json

__all__ = ["Decoder", "Encoder", "add_json_methods", "from_json", "load_json", "save_json", "to_json"]
