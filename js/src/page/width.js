// The browser's half of width.py: tells how wide its strip is, when that changes.

import { usableWidth } from "../pure/places.js";

const SETTLED = 150; // ms without a change, after which a width is told
const observers = new WeakMap(); // a component's element → what watches it, and outlives every update

export default function ({ data, parentElement, setStateValue }) {
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
