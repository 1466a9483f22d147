import { density, HEADER } from "../pure/png.js";

/** An SVG as a PNG of so many px, which says how many of them a metre has. */
export async function raster(svg, width, height, perMetre) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  const png = await canvas.convertToBlob({ type: "image/png" });
  return new Blob([png.slice(0, HEADER), density(Math.round(perMetre)), png.slice(HEADER)], { type: png.type });
}
