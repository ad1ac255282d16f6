"""The surgeon's commands: models in, models out."""
