"""Figures as PNG, SVG and PDF, drawn by a Chromium without a window."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from mha_viz.core.rules import Wrong, one_of
from mha_viz.figures.piece import Spec
from mha_viz.figures.serial import to_json
from mha_viz.figures.theme import ThemeName

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page, Playwright, Route

FORMATS = ("png", "svg", "pdf")
UNITS = {"px": 96, "mm": 25.4, "in": 1}  # to the inch
LARGEST = 200  # inches, of a PDF's page
INSTALL = (
    "needs playwright and Chromium: pip install playwright, and then on Debian apt-get install chromium, elsewhere playwright install "
    "chromium. Without them HTML, CSV, NPZ and JSON can be saved, and the page saves PNG and SVG by itself"
)
_SITE = "http://picture.invalid/"  # a name that no machine has


class Browser:
    """Draws pictures one after the other; used in a ``with``, at the end of which its Chromium ends.

    Chromium starts with the first picture. It runs in a thread of its own, because Playwright starts nowhere else where an event
    loop runs already, as in a notebook.
    """

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1)
        self._playwright: Playwright | None = None
        self._chromium: Chromium | None = None
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.submit(self._end).result()
        self._thread.shutdown()

    def picture(self, spec: Spec, format: str, scale: float = 1, size: tuple[float, str] | None = None) -> bytes:
        """The bytes of the figure ``spec``, a plain dict of ``mha_viz.figures``, as a "png", "svg" or "pdf".

        ``size`` is the finished picture's width and its unit, (160, "mm"); the height follows. Without it a px of the figure is one,
        96 to the inch. A PNG has ``scale`` px for each of them. All marks are visible. The same spec gives the same bytes.

        Raises Wrong where playwright or Chromium is missing, and where the figure has more cells, or px, than the format holds.
        """
        one_of("format", format, FORMATS)
        if not scale > 0:
            raise Wrong("scale", scale, "must be more than 0.", [{"scale": 1}])
        width, unit = size or (spec["layout"]["width"], "px")
        one_of("unit", unit, tuple(UNITS))
        height = width * spec["layout"]["height"] / spec["layout"]["width"]
        inches = width / UNITS[unit], height / UNITS[unit]
        if not (min(inches) > 0 and max(inches) <= LARGEST):
            raise Wrong("size", (width, unit), f"must be more than nothing, and at most {LARGEST} inches across and down.")
        return self._thread.submit(self._picture, spec, format, scale, (width, unit), inches).result()

    def screen(self, url: str, width: int, height: int, theme: ThemeName = "light") -> bytes:
        """The bytes of a PNG of this app's page at ``url`` once it has drawn its pictures, in a window of so many px, light or dark."""
        return self._thread.submit(self._screen, url, width, height, theme).result()

    def _screen(self, url: str, width: int, height: int, theme: ThemeName) -> bytes:
        chromium = self._chromium or self._start("png")
        scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
        page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        try:
            page.goto(url)
            page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning] .mha-maps .main-svg")
            page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')")
            page.wait_for_timeout(1000)  # Plotly's last frame
            return page.screenshot()
        finally:
            page.close()

    def _picture(self, spec: Spec, format: str, scale: float, size: tuple[float, str], inches: tuple[float, float]) -> bytes:
        if self._chromium is None:
            self._start(format)
        found = self._drawing.evaluate("asked => mha.draw(...asked)", [to_json(spec), format, scale, list(size)])
        if "wrong" in found:
            raise Wrong("format", format, found["wrong"])
        drawn = base64.b64decode(found["drawn"].partition(",")[2])
        return self._printed(drawn.decode(), spec["layout"]["paper_bgcolor"], *inches) if format == "pdf" else drawn

    def _start(self, format: str) -> Chromium:
        try:
            from playwright.sync_api import Error, sync_playwright
        except ImportError:
            raise Wrong("format", format, f"{INSTALL}.") from None
        self._playwright = self._playwright or sync_playwright().start()
        try:
            chromium = self._playwright.chromium.launch(executable_path=installed())
        except Error as error:
            raise Wrong("format", format, f"{INSTALL}. It says: {error.message.splitlines()[0]}") from None
        context = chromium.new_context()
        context.route("**/*", _answers())
        self._drawing: Page = context.new_page()
        self._paper: Page = context.new_page()
        self._drawing.goto(_SITE)
        self._chromium = chromium
        return chromium

    def _end(self) -> None:
        if self._chromium is not None:
            self._chromium.close()
        if self._playwright is not None:
            self._playwright.stop()

    def _printed(self, svg: str, paper: str, width: float, height: float) -> bytes:
        """The SVG alone on a page of its size in inches, as PDF.

        Chromium's pages are whole px, so it prints one that is up to two larger, and the page's box, which begins in the corner at the
        bottom left, is cut to the size afterwards.
        """
        style = f"html {{ background: {paper} }} svg {{ position: absolute; left: 0; bottom: 0 }}"
        self._paper.set_content(f"<!doctype html><title>MHA Explorer</title><style>{style}</style>{svg}")
        self._paper.evaluate("document.fonts.ready.then(() => null)")
        printed = self._paper.pdf(width=f"{width + 1 / 96}in", height=f"{height + 1 / 96}in", print_background=True)
        box = rb"(/MediaBox \[0 0) (\S+) (\S+)\]"
        exact = lambda found: b"%b %b %b]" % (found[1], _exact(found[2], 72 * width), _exact(found[3], 72 * height))  # noqa: E731
        printed = re.sub(box, exact, printed)
        return re.sub(rb"\(D:\d{14}", b"(D:20000101000000", printed)  # the same picture is the same file at any time


def _exact(written: bytes, number: float) -> bytes:
    """``number`` in as many bytes as are ``written`` there, so that whatever follows in the file stays in its place."""
    text = f"{number:.{max(len(written) - len(str(int(number))) - 1, 0)}f}".encode()
    return text if len(text) == len(written) else written


def installed() -> str | None:
    """The path of the Chromium on the PATH; None where there is none, and playwright takes its own."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _folder_of(package: str) -> Path:
    """Where a package is, which is not imported for it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent


def _answers() -> Callable[[Route], None]:
    """Answers what the drawing page asks for, all of it from this machine and nothing else."""
    plotly, streamlit = _folder_of("plotly"), _folder_of("streamlit")
    served = {"plotly.js": plotly / "package_data" / "plotly.min.js", "picture.js": Path(__file__).with_name("picture.js")}
    page = "<!doctype html><body></body>" + "".join(f'<script src="{name}"></script>' for name in served)
    for font in (streamlit / "static").rglob("SourceSansVF-Upright*.woff2"):  # the page's own, which Streamlit ships
        served["font.woff2"] = font
        page += '<style>@font-face { font-family: "Source Sans"; font-weight: 100 900; src: url(font.woff2) }</style>'

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(_SITE)
        if name in served:
            route.fulfill(path=served[name])
        elif name == "":
            route.fulfill(body=page, content_type="text/html; charset=utf-8")
        else:
            route.abort()

    return answer
