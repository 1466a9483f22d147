"""A model that is being recorded: whose forward pass runs now, and which of its calls are kept."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mha_viz.core.decimals import prose
from mha_viz.core.rules import Wrong, whole
from mha_viz.sources.capture import budget, masks, modules
from mha_viz.sources.capture.agreement import close
from mha_viz.sources.capture.axes import Unclear
from mha_viz.sources.capture.beneath import NoNumbers, NoTokens, beneath, eager, in_backward
from mha_viz.sources.capture.kept import Kept, Projection, Store, to_numpy
from mha_viz.sources.capture.nonfinite import Watch
from mha_viz.sources.capture.operators import Operators
from mha_viz.sources.capture.rows import Rows

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from mha_viz.core.call import WithoutKey
    from mha_viz.core.mask import Mask
    from mha_viz.sources.capture.beneath import Args, Kwargs
    from mha_viz.sources.capture.kept import Filters


class Run:
    """A model while it is recorded.

    Each of its modules that attention can run in gets a ``forward`` of our own, which calls the module's own: hooks would turn
    the fast path of ``nn.TransformerEncoderLayer`` off. ``watched`` puts them in and takes them out again.
    """

    def __init__(
        self,
        model: nn.Module,
        filters: Filters,
        *,
        limit: int | None = None,
        until_nonfinite: bool = False,
        layout: str | None = None,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise Wrong("model", type(model).__name__, "must be a torch.nn.Module: what is called, as in model(x).")
        self.model: nn.Module = getattr(model, "_orig_mod", model)  # of a compiled one: what was compiled
        self.filters, self.limit = filters, budget.default_limit() if limit is None else whole("limit", limit, 1)
        self.names = {
            module: name or type(module).__name__
            for name, module in self.model.named_modules()
            if not isinstance(module, torch.jit.ScriptModule)
        }
        self.compiled = model is not self.model or any(hasattr(m, "_orig_mod") or m._compiled_call_impl for m in self.names)
        self.operators = Operators(self, layout)
        self.watch = Watch(self) if until_nonfinite else None
        self.inputs: list[tuple[int, ...]] = []  # of each module that runs: the shape of its first tensor
        self.step, self.order, self.over = -1, 0, False
        self.running: list[nn.Module] = []
        self.store = Store()
        self.said: dict[str, list[str]] = {}  # sentence → the names of modules of which it is true
        self.outside: dict[str, None] = {}
        self.last_called: dict[nn.Module, int] = {}
        self.softmaxes: list[str] = []  # names of modules in which a softmax over scores ran
        self.calls: dict[nn.Module, int] = {}
        self.padded_length: int | None = None
        self.wrong: Wrong | None = None  # what a person asked for and cannot have
        self.lost: set[str] = set()  # names of modules whose attention could not be kept
        self.traced = self.traced_flex = False  # attention was compiled or exported; set by code that is traced
        self.seen_flex = False  # flex_attention ran where it is seen, which PyTorch compiles for itself first
        self.gathered: dict[
            nn.Module, int
        ] = {}  # module → how many keys its last call had, where queries and keys are one sequence
        self.memory = masks.Memory()  # what masks are

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While it lasts, what the model attends is kept."""
        replaced = []
        try:
            for module in self.names:
                if self._concerns(module):
                    replaced.append((module, vars(module).get("forward")))
                    module.forward = self._forward(module)
            if self.watch:
                self.watch.start()
            unseen = all(map(_of_torch, self.names)) and not any(isinstance(m, nn.TransformerDecoderLayer) for m in self.names)
            with nullcontext() if unseen else self.operators, eager(self.compiled):
                yield
        finally:
            self._told_of_traced(self.model)
            self.over = True
            for module, own in replaced:
                if own is None:
                    del module.forward
                else:
                    module.forward = own
            if self.watch:
                self.watch.stop()
        if self.compiled:
            self.note("The compiled model ran without its compilation while it was recorded: last digits may differ.")

    def note(self, sentence: str, name: str | None = None) -> None:
        """Say this once about the recording; of the module ``name``, and of others of which it is true."""
        names = self.said.setdefault(sentence, [])
        if name is not None and name not in names:
            names.append(name)

    @contextmanager
    def aside(self, module: nn.Module, unfollowed: str | None = None) -> Iterator[None]:
        """Look at what ``module`` computes; nothing that is raised here reaches it.

        Operators that run meanwhile are seen by no gradient, transform or tracer. What cannot be recorded ends in one note for each
        module, what a person asked for and cannot have in ``wrong``, which waits for the end of the recording. ``unfollowed`` says
        what is lacking where something else goes wrong, the attention itself where None.
        """
        try:
            with self.operators.paused(), beneath():
                yield
        except Wrong as wrong:
            self.wrong, self.over = self.wrong or wrong, True
        except NoNumbers:
            self.lose(
                module,
                "its attention ran on tensors without numbers, as while a model is traced, so nothing of it is recorded.",
            )
        except NoTokens:
            if self.wants(self.names[module]):
                self.note("a call of it on no tokens is left out.", self.names[module])
        except Unclear:
            if isinstance(module, modules.FAST):
                self.lose(module, "its masks differ along torch.vmap, so its attention is not recorded.")
        except Exception as error:
            said, *_ = str(error).splitlines() or ["no reason given"]
            reason = f"({type(error).__name__}: {said})"
            if unfollowed is None:
                self.lose(module, f"its attention could not be followed and is not recorded {reason}")
            elif self.wants(self.names[module]):
                self.note(f"{unfollowed} {reason}", self.names[module])

    def lose(self, module: nn.Module, sentence: str) -> None:
        """Say why attention of ``module`` is not recorded, once for each module."""
        name = self.names[module]
        if self.wants(name) and name not in self.lost:
            self.lost.add(name)
            self.note(sentence, name)

    def _told_of_traced(self, module: nn.Module) -> None:
        """Say that attention inside ``module`` was compiled or exported, where it was since this was last called."""
        traced = self.traced or (self.traced_flex and not self.seen_flex)
        self.traced = self.traced_flex = self.seen_flex = False
        if traced:
            self.lose(
                module,
                "what torch.compile or torch.export traces cannot be seen, so attention in there is not recorded. Call the model before "
                'it is exported; call what is compiled under torch.compiler.set_stance("force_eager").',
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was said, each sentence once: of one module, of two, or of the first and how many more."""
        notes = []
        for sentence, names in self.said.items():
            whom = " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
            notes.append(f"{whom}: {sentence}" if names else sentence)
        return tuple(notes)

    def minimum(self, name: str) -> None:
        """Say that this module hides by a number."""
        self.note(
            "hidden keys get a number in place of −∞. A query with no key left weighs all of them, as its row shows.", name
        )

    def zero(self, name: str) -> None:
        """Say that this module gives 0 to a query without a key."""
        self.note(
            "the model gives 0 to a query that has no key left: its weights are undefined (NaN), its output is not.", name
        )

    def compare(self, name: str, off: float, dtype: torch.dtype) -> None:
        """Say so where this module's own output is ``off``, relative to its largest number, from what follows from what is kept."""
        if off > close(dtype):
            how = f"by {prose(off, '.2g')} of its largest number" if off < float("inf") else "in which numbers are finite"
            self.note(
                f"the model's own output differs {how} from what follows from q, k, v and the mask that are recorded.", name
            )

    def called(self, module: nn.Module) -> None:
        """Count a call of ``module``."""
        self.calls[module] = self.calls_of(module) + 1

    def calls_of(self, module: nn.Module) -> int:
        return self.calls.get(module, 0)

    def one_sequence(self, module: nn.Module, L: int, S: int, sure: bool) -> bool:
        """Whether L queries and S keys of ``module`` are one sequence: where that is ``sure``, or a cache grew by these L."""
        one = sure or self.gathered.get(module) == S - L
        if one:
            self.gathered[module] = S
        return one

    def next_order(self) -> int:
        self.order += 1
        return self.order

    @property
    def here(self) -> nn.Module | None:
        """The module that runs now, None outside the model and while nothing is to be kept."""
        return self.running[-1] if self.running and not self.over and not in_backward() else None

    def wants(self, name: str) -> bool:
        """True where calls of this module are kept in this step; a name that is not wanted is remembered for messages."""
        self.outside.setdefault(name, None)
        steps = self.filters.steps
        return not self.over and self.filters.takes(name) and (steps is None or max(self.step, 0) in steps)

    def keep(
        self,
        module: nn.Module,
        q: Float[Tensor, "N H L D"],
        k: Float[Tensor, "N G S D"],
        v: Float[Tensor, "N G S Dv"],
        mask: Mask,
        *,
        scale: float,
        one_sequence: bool,
        extra: tuple[str, ...] = (),
        query_padding: Tensor | None = None,
        out: Projection | None = None,
        weights: Float[Tensor, "N H L S"] | None = None,
        maps: Float[Tensor, "N H L S"] | None = None,
        used: Float[Tensor, "N H L S"] | None = None,
        result: Float[Tensor, "N L *numbers"] | None = None,
        without_key: WithoutKey = "nan",
        order: int | None = None,
        places: Rows | None = None,
    ) -> Kept:
        """Keep one call of ``module``: q [N, H, L, D], k [N, G, S, D] and v [N, G, S, Dv] as tensors, after filters.

        ``maps`` [N, H, L, S] is kept in their place where the mask and they do not tell the weights, and ``used`` beside it where
        something else than it multiplied the values. ``without_key`` is as in a Call, ``places`` are Rows. ``weights`` [N, H, L, S] and
        ``result`` [N, L, …] are the model's own, looked through for NaN only. Returns the Kept.
        """
        name = self.names[module]
        N, H, L, _ = q.shape
        G, S = k.shape[1:3]
        items = self._items(N)
        rows = min(L, self.filters.max_length or L)
        full = N, L, mask.num_keys
        mask = masks.for_items(mask, N)
        arrays = (
            {"q": q, "k": k, "v": v} if maps is None else {"weights": maps} if used is None else {"weights": maps, "used": used}
        )
        itemsize = 4 if q.dtype is torch.bfloat16 else q.element_size()

        projection = 0 if out is None else self.store.size_of(*out)

        def size(n: int, m: int) -> int:
            if maps is not None:
                return len(arrays) * n * H * m * S * itemsize + projection
            columns = masks.keys_seen(mask, m) + mask.extra
            return budget.size_of_call(n, H, G, m, columns, q.shape[3], v.shape[3], itemsize) + projection

        peers = self._peers(module)
        budget.check(self.limit, self.store.used, len(peers), peers, len(items), rows, size)
        if items != list(range(N)) or rows < L:
            mask = masks.restricted(mask, items, rows)
            columns = [*range(mask.num_keys), *range(S - mask.extra, S)]
            arrays = {
                kind: t[items][:, :, :rows] if kind in ("q", "weights", "used") else t[items][:, :, columns]
                for kind, t in arrays.items()
            }
            query_padding = None if query_padding is None else query_padding[items][:, :rows]
            if rows < L and not mask.causal:
                self.note(f"{rows} of {L} queries are kept, and all {S} keys, since each query may see them all.", name)
        kept = Kept(
            name,
            max(self.step, 0),
            order or self.next_order(),
            full,
            {kind: to_numpy(t) for kind, t in arrays.items()},
            mask,
            scale,
            one_sequence,
            extra,
            None if query_padding is None else to_numpy(query_padding),
            q.dtype,
            without_key,
            (places or Rows()).of_some(items, rows, mask.num_keys),
        )
        self.last_called[module] = self.step
        self.store.add(kept)
        if out is not None:
            self.store.add_projection(kept, *out)
        if self.watch:
            weights, result = (None if t is None else t[items] for t in (weights, result))
            self.watch.call(
                kept, None if weights is None else weights[:, :, :rows], None if result is None else result[:, :rows]
            )
        return kept

    def _items(self, N: int) -> list[int]:
        items = self.filters.items
        if items is None:
            return list(range(N))
        beyond = [item for item in items if item >= N]
        if beyond:
            raise Wrong(
                "items", self.filters.items, f"names item {beyond[0]}: there are {N}, 0 to {N - 1}.", [{"items": range(N)}]
            )
        return list(items)

    def _peers(self, module: nn.Module) -> list[str]:
        """Names of modules like this one, itself first, that are still to be called in this step: each will take as much."""
        alike = [m for m in self.names if type(m) is type(module) and m is not module]
        waiting = [self.names[m] for m in alike if self.last_called.get(m) != self.step and self.filters.takes(self.names[m])]
        return [self.names[module], *waiting]

    def _concerns(self, module: nn.Module) -> bool:
        return module is self.model or isinstance(module, modules.FAST) or not _of_torch(module)

    def _forward(self, module: nn.Module) -> types.MethodType:
        """A method to stand in ``module`` for its ``forward``; in a copy of the module it is that copy's own ``forward``."""
        inner, multihead = module.forward, modules.is_multihead(module)

        @functools.wraps(inner)
        def forward(this: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if this is not module:
                return type(this).forward(this, *args, **kwargs)
            if torch.compiler.is_compiling():  # what stands here is compiled with the model
                if multihead:
                    self.traced = True
                return inner(*args, **kwargs)
            if self.over or in_backward():  # a checkpoint runs its part again there
                return inner(*args, **kwargs)
            return self._run(module, inner, args, kwargs)

        given = inspect.signature(inner)
        this = inspect.Parameter("this", inspect.Parameter.POSITIONAL_ONLY)
        vars(forward)["__signature__"] = given.replace(parameters=[this, *given.parameters.values()])  # libraries ask for it
        return types.MethodType(forward, module)

    def _run(self, module: nn.Module, inner: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
        padded, see, within = self.padded_length, None, None
        self.running.append(module)
        self.inputs.append(
            next((tuple(x.shape) for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and not x.is_nested), ())
        )
        alone = all(map(_of_torch, module.modules())) if isinstance(module, modules.FAST[1:]) else False
        fast = alone or modules.is_multihead(module)
        with self.aside(module):
            if module is self.model:
                self._begin(args, kwargs)
            if isinstance(module, modules.FAST[1:]) and not alone:
                self.note(
                    "holds modules of another's make, so PyTorch's fast path was off while recording.", self.names[module]
                )
            see = modules.before(self, module, args, kwargs)
            within = self.operators.places.enter(fast, alone, args, kwargs)
        try:
            with self.operators.paused() if fast else nullcontext():
                output = inner(*args, **kwargs)
            self._told_of_traced(module)
            with self.aside(module):
                if see is not None and not self.over:
                    see(output)
                self.operators.places.leave(within, output)
            self.operators.finish(module)
        finally:
            self.running.pop()
            self.inputs.pop()
            self.padded_length = padded
            self.operators.forget(module)
        if module is self.model and self.watch:
            with self.aside(module):
                self.watch.output(output)
        return output

    def _begin(self, args: Args, kwargs: Kwargs) -> None:
        if self.watch and self.watch.found:
            self.over = True
            return
        if self.watch:
            self.store.clear()
            self.watch.begin(args, kwargs)
        self.step += 1
        self.operators.places.begin()


def _of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")
