"""Work that takes time: each module yields its progress, so that a page or a command can show it and stop."""
