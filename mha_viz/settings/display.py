"""Display: how a layer is shown, and what single pages and the switches on them need besides the View."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

from mha_viz.core.arrays import DTYPES, Dtype
from mha_viz.core.rules import Wrong
from mha_viz.settings.rules import Ruled, anything, choice, flag, number, optional, ruled
from mha_viz.settings.steps import LANGUAGES, STEPS, Language
from mha_viz.settings.view import View


@dataclass(frozen=True)
class Walk(Ruled):
    """Step by step, which follows the chosen cell's query.

    ``step`` is the one that is shown, in mathematics or as a program in a ``language``; ``together`` follows the query through all heads
    and not the chosen one.
    """

    step: str = ruled("input", choice(*STEPS))
    language: Language = ruled("mathematics", choice(*LANGUAGES))
    together: bool = ruled(False, flag)


@dataclass(frozen=True)
class Caching(Ruled):
    """Decode, which shows a token that is new, and a cache that grows.

    ``token`` is the new one, None in the middle; the first ``prompt`` tokens are read in one call; ``kv_heads`` heads of keys and values
    are kept, None as many as heads, in ``cache_dtype``. How a cache grows is shown for ``cache_layers`` layers and up to
    ``cache_length`` tokens.
    """

    token: int | None = ruled(None, optional(number(0)))
    prompt: int = ruled(1, number(1))
    kv_heads: int | None = ruled(None, optional(number(1)))
    cache_dtype: Dtype = ruled("float32", choice(*DTYPES))
    cache_layers: int = ruled(32, number(1))
    cache_length: int = ruled(4096, number(1))


@dataclass(frozen=True)
class Diagnosis(Ruled):
    """Pitfalls: the one that is shown.

    ``pitfall`` names it with what is set of it, as ``mha_viz.analysis.pitfalls.spelling`` reads it, "" the first; it is one of those that
    have the ``symptom``, "" all.
    """

    pitfall: str = ruled("", anything)
    symptom: str = ruled("", anything)


@dataclass(frozen=True)
class Switches(Ruled):
    """The switches of Explore.

    ``opened`` shows the whole derivation of the chosen number; ``divisors`` offers only head counts that divide embed_dim; ``verbatim``
    shows PyTorch's own error where there is one.
    """

    opened: bool = ruled(False, flag)
    divisors: bool = ruled(False, flag)
    verbatim: bool = ruled(False, flag)


@dataclass(frozen=True)
class Display:
    """How a layer is shown: the ``view`` of its maps, and what the pages need besides.

    An address spells the fields of all of them by name, so no two have a field of the same name.
    """

    view: View = field(default_factory=View)
    walk: Walk = field(default_factory=Walk)
    caching: Caching = field(default_factory=Caching)
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    switches: Switches = field(default_factory=Switches)

    @property
    def values(self) -> dict[str, Any]:
        """The fields of all of them, by name."""
        return {name: value for f in fields(self) for name, value in vars(getattr(self, f.name)).items()}

    def changed(self, **values: Any) -> "Display":
        """The same with these fields changed, whichever has them. Raises Wrong where a value breaks its rule."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        new = {name: {one: values[one] for one in values if OWNERS[one] is type(part)} for name, part in parts.items()}
        return replace(self, **{name: replace(parts[name], **own) for name, own in new.items() if own})

    def misfits(self, N: int, H: int, L: int, S: int) -> list[Wrong]:
        """A Wrong for each field that points beyond weights of [N, H, L, S]; see ``View.misfits``."""
        token, found = self.caching.token, self.view.misfits(N, H, L, S)
        if token is None or token < L:
            return found
        rule = f"points to {token}, and there are {L}, from 0 to {L - 1}."
        return [*found, Wrong("token", token, rule, [{"token": L - 1}])]


def owners(*kinds: type[Ruled]) -> dict[str, type[Ruled]]:
    """Which of these dataclasses has the field of a name, by name.

    Raises TypeError where two have one of the same name: an address could not say which is meant.
    """
    found: dict[str, type[Ruled]] = {}
    for kind in kinds:
        for name in kind.__dataclass_fields__:
            if name in found:
                both = f"{kind.__name__} and {found[name].__name__}"
                raise TypeError(f"{both} have a field {name} each, and an address holds one of each name.")
            found[name] = kind
    return found


DISPLAYED: tuple[type[Ruled], ...] = tuple(
    get_type_hints(Display).values()
)  # the dataclasses of which a Display holds one each
OWNERS = owners(*DISPLAYED)
