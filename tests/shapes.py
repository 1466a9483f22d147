"""The array types that a class declares for its attributes, held against what an instance of it has."""

import re

import jaxtyping
import numpy as np
from jaxtyping import jaxtyped

from mha_viz.core.trace import Trace

SHAPED = re.compile(r"(?:Float|Bool|Int|Shaped)\[np\.ndarray, '[^']*'\]")
KNOWN = {"Float": jaxtyping.Float, "Bool": jaxtyping.Bool, "Int": jaxtyping.Int, "Shaped": jaxtyping.Shaped, "np": np}


def declared(kind):
    """name → the array types that an attribute may have, as its annotation says."""
    found = {name: SHAPED.findall(annotation) for name, annotation in vars(kind)["__annotations__"].items()}
    return {name: [eval(text, KNOWN) for text in texts] for name, texts in found.items() if texts}


def check(value, sizes):
    """Each array of ``value`` has one of its declared types, where each letter of ``sizes`` is so much and every other one size."""
    with jaxtyped("context"):
        for letter, size in sizes.items():
            assert isinstance(np.empty(size), jaxtyping.Float[np.ndarray, f" {letter}"])
        for name, kinds in declared(type(value)).items():
            if isinstance(value, Trace) and not value.has(name):
                continue
            array = getattr(value, name)
            if array is not None:
                assert any(isinstance(array, kind) for kind in kinds), (type(value).__name__, name, array.shape, array.dtype)
