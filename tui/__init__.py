"""The two user interfaces: the full-screen app, and the command line over the same jobs."""

VERSION = "0.1.0"
