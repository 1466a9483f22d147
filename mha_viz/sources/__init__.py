"""Where attention comes from: each module makes Traces of one kind of source."""
