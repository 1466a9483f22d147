// Bundled from js/src/page/links.js by make bundle. Its comments stand there, and changes belong there.
// sha256 78e58badcb6e17d94d7cee5ffd7f6f1e1631c34f3811c94ac8403dd027e5e4e4
// src/page/links.js
var LINK = "[data-testid=stPageLink-NavLink]:not([target=_blank])";
var passed = /* @__PURE__ */ new WeakSet();
function hold(event) {
  const link = event.target.closest?.(LINK);
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (passed.delete(link)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const pass = () => {
    passed.add(link);
    link.click();
  };
  setTimeout(() => setTimeout(pass));
}
function links_default() {
  document.mhaLinks ??= document.addEventListener("click", hold, true) ?? true;
}
export {
  links_default as default
};
