"""The app's own Textual widgets: virtual lists, bars, a line input, panes drawn line by line."""
