"""Rows are named by the tokens that they came from: words go to their own sequence alone, and parts keep their true numbers."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mha_viz
from mha_viz.sources.capture.axes import Axis
from mha_viz.sources.capture.places import Places
from tests.sources.capture.models import recorded

E, H, L = 8, 2, 6
WORDS = [list("abcdef")] * 2
NUMBERS = tuple(map(str, range(L)))
X = torch.randn(2, L, E, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Attention by hand: ``attend(q, k, v)`` of x, and of ``memory`` where there is one."""

    def __init__(self, attend=F.scaled_dot_product_attention):
        super().__init__()
        self.attend = attend
        self.q, self.k, self.v, self.out = (nn.Linear(E, E) for _ in range(4))

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        q, k, v = (f(t).view(2, -1, H, E // H).transpose(1, 2) for f, t in ((self.q, x), (self.k, memory), (self.v, memory)))
        return self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Translator(nn.Module):
    def __init__(self, pure):
        super().__init__()
        self.words, self.places = nn.Embedding(9, E), nn.Embedding(L, E)
        names = ("encoder", "own", "cross")
        self.parts = nn.ModuleDict(
            {name: nn.MultiheadAttention(E, H, batch_first=True) if pure else Attention() for name in names}
        )
        self.norm, self.pure = nn.LayerNorm(E), pure

    def attend(self, name, x, memory):
        return self.parts[name](x, memory, memory)[0] if self.pure else self.parts[name](x, memory)

    def forward(self, source):
        target = torch.zeros_like(source)
        target[:, 1:] = source[:, :-1]
        places = torch.arange(source.shape[1])
        x, y = (self.words(ids) + self.places(places) for ids in (source, target))
        x = self.norm(x + self.attend("encoder", x, x))
        y = self.norm(y + self.attend("own", y, y))
        return y + self.attend("cross", y, x)


@pytest.mark.parametrize("pure", (False, True))
def test_words_of_the_source_are_not_put_on_a_target_as_long(pure):
    recording = recorded(Translator(pure).eval(), torch.randint(9, (2, L)), filters={"tokens": WORDS}, gradients=False)
    encoder, own, cross = recording.traces
    words = tuple(WORDS[0])
    assert encoder.query_tokens[0] == encoder.key_tokens[0] == cross.key_tokens[0] == words
    assert own.query_tokens[0] == own.key_tokens[0] == cross.query_tokens[0] == NUMBERS
    assert cross.tokens.positions is None and own.tokens.positions is not None


@pytest.mark.parametrize("gradients", (False, True))
def test_so_in_the_transformer_of_pytorch(gradients):
    model = nn.Transformer(E, H, 2, 2, 16, batch_first=True).eval()
    recording = recorded(model, X, torch.randn(2, L, E), filters={"tokens": WORDS}, gradients=gradients)
    for trace in recording.traces:
        from_source = "encoder" in trace.name, "encoder" in trace.name or "multihead_attn" in trace.name
        named = trace.query_tokens[0] == tuple(WORDS[0]), trace.key_tokens[0] == tuple(WORDS[0])
        assert named == from_source, trace.name
        assert {trace.query_tokens[0], trace.key_tokens[0]} <= {NUMBERS, tuple(WORDS[0])}


def in_chunks(cut):
    def attend(q, k, v):
        return torch.cat([F.scaled_dot_product_attention(part, k, v) for part in cut(q)], dim=2)

    return attend


CUTS = {
    "split": lambda q: q.split(2, dim=2),
    "chunk": lambda q: q.chunk(3, 2),
    "slices": lambda q: [q[:, :, :2], q[..., 2:4, :], q[:, :, -2:]],
    "narrow": lambda q: [q.narrow(2, start, 2) for start in (0, 2, 4)],
    "blocks": lambda q: q.view(2, H, 3, 2, -1).unbind(2),
    "selected": lambda q: [q.reshape(2, H, 3, 2, -1)[:, :, i] for i in (0, 1, -1)],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("words", (False, True))
def test_chunks_of_queries_keep_their_numbers_and_words(cut, words):
    filters = {"layout": "NHLD"} | ({"tokens": WORDS} if words else {})
    recording = recorded(Attention(in_chunks(CUTS[cut])), X, filters=filters)
    right = WORDS[0] if words else NUMBERS
    for i, trace in enumerate(recording.traces):
        assert trace.query_tokens[1] == tuple(right[2 * i : 2 * i + 2]) and trace.key_tokens[1] == tuple(right)
        assert trace.tokens.positions.tolist() == [2 * i, 2 * i + 1]
    assert len(recording.traces) == 3


def test_local_blocks_of_keys_keep_theirs_and_what_is_gathered_is_not_guessed():
    def attend(q, k, v):
        outputs = []
        for i in range(3):
            near = slice(2 * i, 2 * i + 2)
            third = torch.full((1, 1, 1, 1), 3)
            key, value = (
                torch.cat([t[:, :, near], t[:, :, :1], t[:, :, third.flatten()], t.take_along_dim(third, 2)], dim=2)
                for t in (k, v)
            )
            outputs.append(F.scaled_dot_product_attention(q[:, :, near], key, value))
        return torch.cat(outputs, dim=2)

    recording = recorded(Attention(attend), X, filters={"layout": "NHLD"})
    assert [trace.key_tokens[0] for trace in recording.traces] == [(str(i), str(i + 1), "0", "3", "?") for i in (0, 2, 4)]
    assert [trace.query_tokens[0] for trace in recording.traces] == [(str(i), str(i + 1)) for i in (0, 2, 4)]


def test_filters_keep_true_numbers():
    recording = recorded(Attention(in_chunks(CUTS["split"])), X, filters={"layout": "NHLD", "items": 1, "max_length": 1})
    assert [trace.query_tokens for trace in recording.traces] == [(("0",),), (("2",),), (("4",),)]


@pytest.mark.parametrize(
    "operator",
    (
        lambda x: torch.einsum("nle->nle", x),
        lambda x: torch.einsum("nle,ef,fg->nlg", x, torch.eye(E), torch.eye(E)),
        lambda x: torch.einsum(x, [0, 1, 2], torch.eye(E), [2, 3], [0, 1, 3]),
        lambda x: torch.cat(tensors=[x], dim=1) + torch.cat([torch.zeros(0), torch.zeros(0)]).sum(),
        lambda x: x + torch.nested.to_padded_tensor(torch.nested.nested_tensor([x[0], x[1, :2]]) * 2, 0.0).sum(),
    ),
)
def test_no_operator_on_the_way_keeps_attention_from_being_recorded(operator):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()

        def forward(self, x):
            return self.attention(operator(x))

    recording = recorded(Model(), X, filters={"tokens": WORDS}, gradients=False)
    assert recording.notes == () and recording.traces[0].query_tokens[0] == tuple(WORDS[0])


def test_what_cannot_be_followed_to_its_tokens_says_so_and_is_recorded(monkeypatch):
    monkeypatch.setattr("mha_viz.sources.capture.places.Places.look", lambda *_: 1 / 0)
    recording = recorded(Attention(), X)
    assert len(recording.traces) == 1 and any("labels after it may be others (ZeroDivisionError" in n for n in recording.notes)


ORDER = [4, 2, 0, 5, 1, 3]


@pytest.mark.parametrize(
    ("move", "words"),
    (
        (lambda x: x.flip(1), "fedcba"),
        (lambda x: torch.flip(x, dims=[-2]), "fedcba"),
        (lambda x: x.roll(1, 1), "fabcde"),
        (lambda x: torch.roll(x, shifts=(2,), dims=(1,)), "efabcd"),
        (lambda x: torch.cat([x[:, 2:], x[:, :2]], dim=1), "cdefab"),
        (lambda x: x[:, ORDER], "ecafbd"),
        (lambda x: x[:, torch.tensor(ORDER)], "ecafbd"),
        (lambda x: x[:, np.array(ORDER)], "ecafbd"),
        (lambda x: x[..., torch.tensor(ORDER), :], "ecafbd"),
        (lambda x: x.index_select(1, torch.tensor(ORDER)), "ecafbd"),
        (lambda x: x[:, torch.ones(L, dtype=torch.bool)], "abcdef"),
        (lambda x: x.gather(1, torch.tensor(ORDER).view(1, L, 1).expand_as(x)), "012345"),  # which differ by item, maybe
        (lambda x: x.sort(dim=1).values, "012345"),
        (lambda x: x.sort().values, "abcdef"),  # numbers of a token among themselves
    ),
)
@pytest.mark.parametrize("pure", (False, True))
def test_rows_in_another_order_take_their_words_along(move, words, pure):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(E, H, batch_first=True) if pure else Attention()

        def forward(self, x):
            y = move(x)
            return self.attention(y, y, y)[0] if pure else self.attention(y)

    (trace,) = recorded(Model(), X, filters={"tokens": WORDS}, gradients=False).traces
    assert trace.query_tokens == trace.key_tokens == (tuple(words),) * 2


def test_steps_go_on_where_the_cache_ends_also_in_cross_attention_and_after_it_was_cut():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.cross = Attention(), Attention()
            self.cache = None

        def forward(self, x, memory, kept):
            past = x[:, :0] if self.cache is None else self.cache[:, :kept]
            self.cache = torch.cat([past, x], dim=1)
            return self.cross(x + self.own(x, self.cache), memory)

    model, memory = Decoder(), torch.randn(2, 3, E)
    with mha_viz.record(model) as recording:
        for x, kept in ((X, 0), (X[:, :1], 4), (X[:, :2], 5)):  # the cache is cut to four, as where guesses were wrong
            model(x, memory, kept)
    named = [trace.query_tokens[0] for trace in recording.traces]
    assert named == [NUMBERS, NUMBERS, ("4",), ("4",), ("5", "6"), ("5", "6")]


def test_a_cache_that_slides_keeps_true_numbers():
    class Sliding(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.cache = Attention(), None

        def forward(self, x):
            seen = x if self.cache is None else torch.cat([self.cache, x], dim=1)
            self.cache = seen[:, -3:]
            return self.own(x, seen)

    model = Sliding()
    with mha_viz.record(model) as recording:
        for x in (X, X[:, :1], X[:, :1], X[:, :1]):
            model(x)
    named = [(trace.query_tokens[0], trace.key_tokens[0]) for trace in recording.traces[1:]]
    assert named == [(("6",), tuple("3456")), (("7",), tuple("4567")), (("8",), tuple("5678"))]


@pytest.mark.parametrize("new", (1, 2))
def test_heads_that_were_folded_into_queries_hide_no_numbers(new):
    class Sliding(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.cache = nn.Linear(E, 4 * 4), nn.Linear(E, 2 * 4), None

        def forward(self, x):
            seen = x if self.cache is None else torch.cat([self.cache, x], dim=1)
            self.cache = seen[:, -3:]
            q = self.q(x).view(2, -1, 4, 4).transpose(1, 2).reshape(2, 2, -1, 4)  # heads that share keys beside the queries
            k = self.k(seen).view(2, -1, 2, 4).transpose(1, 2)
            return F.scaled_dot_product_attention(q, k, k).reshape(2, 4, -1, 4).transpose(1, 2).flatten(2)

    model = Sliding()
    with mha_viz.record(model) as recording:
        for x in (X, X[:, :new]):
            model(x)
    trace = recording.traces[1]
    assert trace.shape == (2, 4, new, 3 + new)
    assert (trace.query_tokens[0], trace.key_tokens[0]) == (tuple("67"[:new]), tuple("34567"[: 3 + new]))


WRITES = {
    "index_copy_": lambda cache, start, x: cache.index_copy_(1, torch.arange(start, start + x.shape[1]), x),
    "by name": lambda cache, start, x: cache.index_copy_(dim=1, index=torch.arange(start, start + x.shape[1]), source=x),
    "a slice": lambda cache, start, x: cache.__setitem__((slice(None), slice(start, start + x.shape[1])), x),
    "places": lambda cache, start, x: cache.__setitem__((slice(None), torch.arange(start, start + x.shape[1])), x),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_cache_of_fixed_size_tells_which_queries_are_written_to_it(write):
    class Static(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.seen = Attention(), 0
            self.register_buffer("cache", torch.zeros(2, 9, E))

        def forward(self, x):
            write(self.cache, self.seen, x)
            self.seen += x.shape[1]
            return self.own(x, self.cache)

    model = Static()
    with mha_viz.record(model) as recording:
        for x in (X, X[:, :1], X[:, :2]):
            model(x)
    assert [trace.query_tokens[0] for trace in recording.traces] == [NUMBERS, ("6",), ("7", "8")]
    assert {trace.key_tokens[0] for trace in recording.traces} == {tuple("012345678")}


def test_what_is_joined_to_its_own_part_goes_round_in_no_circle():
    """As a model may that writes its cache into a larger one, and that back into the first."""
    places, a, b, c = Places(), Axis(2), Axis(3), Axis(4)
    for part, whole in ((a, b), (b, c), (c, a), (a, c), (c, b)):
        places._join(part, whole)
    assert len({id(places.family(root)) for root in (a, b, c)}) == 1
