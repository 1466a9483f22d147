"""Numbers with the hyphen of the keyboard for their minus, where people read them."""

import re

from tests.app.test_plain_text import said

HYPHEN = re.compile(r"(?<!or )-(?:inf|∞)|(?<![\w.,·/=\[-])-\.?\d|\d[eE]-\d")
TEX = r"\$\$.*?\$\$|\$[^$]*\$"  # which sets a minus by itself
HTML = r"<style.*?</style>|<code.*?</code>|<pre.*?</pre>|(?:href|style|class|src|id)=(['\"]).*?\1"
CODE = re.compile(rf"```.*?```|`[^`]*`|{TEX}|{HTML}", re.DOTALL)


def hyphened(at):
    """Every sentence and HTML of a page in which a number has a hyphen for its minus; "or -inf" says what may be typed."""
    texts = [*said(at), *(node.proto.body for node in at.get("html"))]
    return [text for text in texts if HYPHEN.search(CODE.sub(" ", text))]
