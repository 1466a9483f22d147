export const HEADER = 33; // bytes of a PNG before any chunk that is not its header

/** The chunk pHYs, by which documents know how large a PNG is: its px per metre, across and down. */
export function density(perMetre) {
  const chunk = new DataView(new ArrayBuffer(21));
  [9, 0x70485973, perMetre, perMetre].forEach((number, i) => {
    chunk.setUint32(4 * i, number);
  });
  chunk.setUint8(16, 1);
  chunk.setUint32(17, crc32(new Uint8Array(chunk.buffer, 4, 13)));
  return chunk;
}

function crc32(bytes) {
  let check = ~0;
  for (const byte of bytes) {
    check ^= byte;
    for (let bit = 0; bit < 8; bit++) check = check & 1 ? (check >>> 1) ^ 0xedb88320 : check >>> 1;
  }
  return ~check;
}
