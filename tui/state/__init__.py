"""What the app knows and shows, as plain data: models, rows, filters, forms, the session."""
