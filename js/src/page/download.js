import { pictureOf } from "../picture/picture.js";
import { TooLarge } from "../pure/sizes.js";

const KEPT = 60_000; // ms that a file is there to be saved

/** Saves a picture as a file of this name. Returns what is to be said of it, and whether that matters to all: what cannot be saved does. */
export async function download({ data, layout }, { format, name, scale, size }) {
  try {
    const file = await pictureOf(window.Plotly, { data, layout }, format, { scale, size: size ?? undefined });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: `${name}.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
    return { words: `Saved ${link.download}.`, matters: false };
  } catch (error) {
    return {
      words: `Not saved: ${error instanceof TooLarge ? `${format.toUpperCase()} ` : ""}${error.message}`,
      matters: true,
    };
  }
}
