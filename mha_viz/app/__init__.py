"""The app: what a person has set, how it is drawn, and the pages."""
