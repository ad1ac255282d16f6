"""What the app does when a key is pressed: start and follow jobs, open models, edit. No widgets."""
