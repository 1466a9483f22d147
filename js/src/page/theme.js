// The browser's half of theme.py. Streamlit 1.67 keeps what a person chose in its menu under this name, by the path that the page was
// loaded from, and reads it there when it loads: nothing but loading takes a theme over.

export default function ({ data }) {
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
  location.reload();
}
