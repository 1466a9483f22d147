const fonts = new Map(); // family → style element, as text

/** A style element with the page's upright @font-face rules for the first of these families, their files within them: a file sees nothing
 * of the page's fonts, and where words are laid out for one, another's would touch. Nothing where that family is no web font. */
export async function webFont(families) {
  const family = bare(families.split(",")[0]);
  await document.fonts.load(`14px "${family}"`); // before Plotly lays words out
  if (!fonts.has(family)) fonts.set(family, await fontFaces(family));
  return fonts.get(family);
}

async function fontFaces(family) {
  const sheets = [...document.styleSheets].filter(({ href }) => !href || href.startsWith(location.origin)); // others may not be read
  const faces = sheets
    .flatMap((sheet) => [...sheet.cssRules].map((rule) => [rule, sheet.href ?? document.baseURI]))
    .filter(
      ([rule]) =>
        rule instanceof CSSFontFaceRule && bare(rule.style.fontFamily) === family && rule.style.fontStyle !== "italic",
    );
  const rules = faces.map(async ([{ style }, base]) => {
    const url = new URL(/url\(["']?(.*?)["']?\)/.exec(style.src)[1], base);
    const file = await dataUrl(await (await fetch(url)).blob());
    return `@font-face { font-family: "${family}"; font-weight: ${style.fontWeight || "normal"}; src: url(${file}); }`;
  });
  return rules.length ? `<style>${(await Promise.all(rules)).join(" ")}</style>` : "";
}

function bare(name) {
  return name.replace(/["']/g, "").trim();
}

/** A file as an address that holds it. */
export function dataUrl(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}
