"""Graphs changed on the protobuf wire, where nothing needs to be parsed."""
