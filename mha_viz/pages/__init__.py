"""One Streamlit page a file: widgets and layout, no mathematics."""
