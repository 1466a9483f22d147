// The browser's half of live.py.

import { LivePicture } from "./live_picture.js";
import { sent } from "./sent.js";

const pictures = new WeakMap(); // a component's element → its LivePicture, which outlives every update

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  if (!pictures.has(parentElement)) pictures.set(parentElement, new LivePicture(parentElement));
  const picture = pictures.get(parentElement);
  picture.send = { setStateValue, setTriggerValue };
  picture.show(sent(data));
  // Streamlit also cleans up after calls that newer ones overtook: only an element that has left the page is done with.
  return () => setTimeout(() => parentElement.isConnected || picture.close());
}
