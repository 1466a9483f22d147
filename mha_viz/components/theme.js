// Bundled from js/src/page/theme.js by make bundle. Its comments stand there, and changes belong there.
// sha256 32afb40113ccb58fdb49fda4cc00ed79e8c7bafcafb95d41ad931e89f38f8ace
// src/page/theme.js
function theme_default({ data }) {
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
  location.reload();
}
export {
  theme_default as default
};
