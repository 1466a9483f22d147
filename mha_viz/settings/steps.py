"""The steps in which one query goes through a layer, and the tutorial's five that they belong to."""

from typing import Literal, TypeAlias, get_args

Language: TypeAlias = Literal["mathematics", "numpy", "torch"]

STEPS = {  # by name: the tutorial's step, and what happens here
    "input": ("Input", "the tokens"),
    "configure": ("Prepare and configure", "sizes, weights, checks"),
    "query": ("Algorithm process", "the query is projected: q"),
    "keys": ("Algorithm process", "every key is projected: k"),
    "dot": ("Algorithm process", "q · k for every key"),
    "scale": ("Algorithm process", "divided by √D"),
    "mask": ("Algorithm process", "the mask"),
    "softmax": ("Algorithm process", "softmax: the weights"),
    "dropout": ("Algorithm process", "dropout on the weights"),
    "values": ("Algorithm process", "the weighted sum of v"),
    "concat": ("Algorithm process", "heads side by side"),
    "project": ("Algorithm process", "mixed by the output projection, a sum over heads"),
    "output": ("Output", "the output row"),
    "validate": ("Validate", "what has to hold"),
}
LANGUAGES: tuple[Language, ...] = get_args(Language)
