// Bundled from js/src/page/links.js by make bundle. Its comments stand there, and changes belong there.
// sha256 5b7a9d9605dcccf21b6254b42ac2c8a2dc13b50a6338c3237f612afc9def489c
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
