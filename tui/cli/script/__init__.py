"""Python scripts that do what a command line does: `--gen-script`."""
