"""A Trace in, a Plotly figure out."""
