"""From the app's state to styled text: pure functions, no widgets."""
