// Bundled from js/src/page/width.js by make bundle. Its comments stand there, and changes belong there.
// sha256 db6f942e0845edc51a96e470b9ffc6f1108555226f494138e28b5a82204aab96
// src/pure/places.js
var LEAST = 320;
function usableWidth(px) {
  return Math.max(LEAST, Math.floor(px / 8) * 8);
}

// src/page/width.js
var SETTLED = 150;
var observers = /* @__PURE__ */ new WeakMap();
function width_default({ data, parentElement, setStateValue }) {
  const strip = parentElement.querySelector(".mha-width");
  const measure = () => {
    const width = usableWidth(strip.clientWidth);
    if (strip.clientWidth && width !== strip.told) {
      strip.told = width;
      setStateValue("width", width);
    }
  };
  strip.told = data.width;
  if (!observers.has(strip)) {
    const later = () => {
      clearTimeout(strip.later);
      strip.later = setTimeout(measure, SETTLED);
    };
    observers.set(strip, new ResizeObserver(later));
    observers.get(strip).observe(strip);
  }
  measure();
}
export {
  width_default as default
};
