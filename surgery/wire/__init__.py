"""Changes graphs in protobuf wire format, without parsing."""
