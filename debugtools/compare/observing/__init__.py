"""Running the sides and giving their tensors as they are made: stream, marked, as executed, on the device."""
