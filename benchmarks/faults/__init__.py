"""Measurements on models with planted faults (tests/support/faults): how well what is wrong in them is found."""
