"""From a model to a serialised engine: network, config, profiles, precision, calibration."""
