// Bundled from js/src/page/theme.js by make bundle. Its comments stand there, and changes belong there.
// sha256 d9c40523b5ab45a8dd9d1974e72c00a3a0f87e5359eee182320367ea8703bdec
// src/page/theme.js
function theme_default({ data }) {
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
  location.reload();
}
export {
  theme_default as default
};
