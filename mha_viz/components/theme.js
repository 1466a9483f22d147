// Bundled from js/src/page/theme.js by make bundle. Its comments stand there, and changes belong there.
// sha256 ed4fb9aa6bec9d62b2e211e61eb266a7cc53d0cb896b7cb9686bbcb00923ecc0
// src/page/theme.js
function theme_default({ data }) {
  localStorage.setItem(`stActiveTheme-${location.pathname}-v2`, JSON.stringify(data.theme));
  location.reload();
}
export {
  theme_default as default
};
