// Bundled from js/src/page/theme.js by make bundle. Its comments stand there, and changes belong there.
// sha256 0cb26928c7a1837aec2bbbcb50d93a4e2b5268a6ab88fa8b941adb4502b13708
// src/page/theme.js
function theme_default({ data }) {
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
  location.reload();
}
export {
  theme_default as default
};
