"""`surgeon sanitize`: several clean-up steps in one command."""
