"""What `--json` prints, command by command, as types: docs/schemas/ is made from them, and no more than that."""
