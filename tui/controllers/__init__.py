"""What the app does when a key asks for it: starting and following jobs, opening models, editing. No widgets."""
