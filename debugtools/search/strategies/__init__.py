"""Searches that ask for verdicts and are told them: pure objects that know no model, process or screen."""
