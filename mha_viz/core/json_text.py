"""JSON from a file or an address: whatever it holds, the outcome is a value or a Wrong."""

import json
import re
from typing import Any

from mha_viz.core.rules import Wrong

ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(argument: str, text: str, shown: object = None) -> Any:
    """The value that a JSON ``text`` spells; ``argument`` and ``shown`` (the text where None) name it in a Wrong.

    Raises Wrong for text that is no JSON, that nests too deep to read, or that holds half a surrogate pair, which no page can show.

    >>> parse_json("settings", '{"num_heads": 4}')
    {'num_heads': 4}
    """
    shown = text if shown is None else shown
    try:
        value = json.loads(text)
        if ESCAPED_SURROGATE.search(text):  # json joins the pairs and keeps a lone half
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise Wrong(argument, shown, "must be JSON, and its lists or objects are nested too deep to read.") from None
    except UnicodeEncodeError:
        raise Wrong(
            argument, shown, "must be text, and it holds half a character (a lone surrogate such as \\ud800)."
        ) from None
    except ValueError as error:
        raise Wrong(argument, shown, f"must be JSON: {error}.") from None
    return value
