"""The pages of the app and its modal lists, one module each, and what pages share."""
