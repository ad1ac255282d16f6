"""Scripts for repro bundles: standalone, neither imported by this tool nor importing it."""
