"""What fits into memory: sizes as they are estimated and as they are measured, what is free, and what is said where it is too little."""

import numpy as np
import pytest

from mha_viz.__main__ import main
from mha_viz.commands import COMMANDS
from mha_viz.core import memory as room
from mha_viz.core.attend import attend
from mha_viz.core.batch import Batch
from mha_viz.core.layer import Layer
from mha_viz.core.memory import check_layer_memory, check_memory, memory, out_of_memory, peak
from mha_viz.core.rules import Wrong
from mha_viz.core.trace import Trace

SIZES = {
    "self": {"L": 5000, "S": 5000},
    "extra columns": {"L": 5000, "S": 5002},
    "cross": {"L": 5000, "S": 9000},
    "cross, fewer keys": {"L": 900, "S": 700, "dtype": "float64"},
    "dropout": {"L": 5000, "S": 5000, "dropout": True},
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_what_does_not_fit_is_refused_with_what_would(size):
    """Every size that it offers fits, alone, and the next larger does not."""
    size = {"N": 12, "H": 8, "E": 16} | size
    available = peak(**size) // 3
    with pytest.raises(Wrong, match=r"seq_len = .* would take .*iB with every intermediate, and .*iB may be used") as caught:
        check_memory(**size, available=available)
    offered = [next(iter(change.items())) for change in caught.value.nearest]
    assert {name for name, _ in offered} >= {"seq_len", "batch_size"}
    assert ("source_len" in dict(offered)) == (size["S"] - size["L"] not in (0, 1, 2))
    for name, value in offered:
        check_memory(**_resized(size, name, value), available=available)
        with pytest.raises(Wrong):
            check_memory(**_resized(size, name, value + 1), available=available)


def _resized(size, name, value):
    extra = size["S"] - size["L"]
    if name == "seq_len" and extra in (0, 1, 2):
        return size | {"L": value, "S": value + extra}
    return size | {{"seq_len": "L", "source_len": "S", "batch_size": "N"}[name]: value}


def test_the_refusal_reads_well():
    with pytest.raises(Wrong) as caught:
        check_memory(3, 8, 100_000, 100_000, 128, available=8 * 2**30)
    text = "seq_len = 100000: [N, H, L, S] = [3, 8, 100000, 100000] would take 2.166 TiB with every intermediate, "
    assert str(caught.value).startswith(text + "and 4 GiB may be used, half of what is free. Nearest right: seq_len = ")


def test_nothing_that_fits_is_offered_where_nothing_does():
    with pytest.raises(Wrong) as caught:
        check_memory(1, 8, 10, 10, 128, available=10)
    assert caught.value.nearest == ()


def test_weights_that_do_not_fit_are_refused():
    """The largest multiple of num_heads that fits is offered, so that taking the advice breaks no other rule."""
    with pytest.raises(Wrong, match=r"embed_dim = 120000: the weights would take .*iB, and 4 GiB may be used") as caught:
        check_layer_memory(120_000, num_heads=12, available=8 * 2**30)
    right = caught.value.nearest[0]["embed_dim"]
    assert right % 12 == 0
    check_layer_memory(right, num_heads=12, available=8 * 2**30)
    with pytest.raises(Wrong):
        check_layer_memory(right + 12, num_heads=12, available=8 * 2**30)


def test_attend_refuses_what_does_not_fit():
    """One long sequence: a map of 2,000,000 × 2,000,000 fits into nobody's memory, and nothing of it is made."""
    with pytest.raises(Wrong, match="seq_len = 2000000: "):
        attend(Layer.random(2, 2), Batch(np.zeros((1, 2_000_000, 2), np.float32)))


@pytest.mark.parametrize(
    "engine, dtype", [("torch", "float32"), ("torch", "float64"), ("torch", "float16"), ("numpy", "float64")]
)
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_the_estimate_is_what_a_trace_holds(engine, dtype, training):
    """Counted over the memory of all fields: not less than that, and less than half more (the draw itself is no field)."""
    trace = attend(Layer.random(16, 4, dropout=0.5), Batch(np.ones((2, 64, 16)), causal=True), engine, dtype, training)
    buffers = {}
    for name in Trace.fields():
        value = getattr(trace, name)
        if value is not None:
            start, stop = np.lib.array_utils.byte_bounds(value)
            buffers[start] = stop - start
    held, estimate = sum(buffers.values()), memory(2, 4, 64, 64, 16, dtype=dtype, dropout=training)
    assert held <= estimate < 1.5 * held


@pytest.mark.parametrize(
    ("listed", "group", "files"),
    [
        ("0::/app/one", "app", ("memory.max", "memory.current", "inactive_file")),
        ("0::/", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "5:cpu:/\n4:memory:/docker/of/the/host",
            "memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
    ids=["a parent's limit", "a container", "a container of the first kind"],
)
def test_the_limit_of_a_control_group_counts(tmp_path, listed, group, files):
    """Files in memory give way, and so are free."""
    place = tmp_path / "sys/fs/cgroup" / group
    place.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{listed}\n")
    limit, used, cached = files
    (place / limit).write_text("1000\n")
    (place / used).write_text("700\n")
    (place / "memory.stat").write_text(f"anon 5\n{cached} 40\nother 7\n")
    assert list(room._left_by_groups(tmp_path)) == [340]
    (place / limit).write_text("max\n" if limit == "memory.max" else "9223372036854771712\n")
    assert list(room._left_by_groups(tmp_path)) == []


def test_no_control_groups_limit_nothing(tmp_path):
    assert list(room._left_by_groups(tmp_path)) == []


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:128] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
            True,
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("can't allocate memory"), False),
    ],
)
def test_which_errors_say_that_memory_ran_out(error, is_memory):
    assert room.ran_out(error) == is_memory


def test_memory_that_runs_out_is_told_as_the_sizes_that_fit():
    size = {"N": 2, "H": 8, "L": 5000, "S": 5000, "E": 64}
    wrong = out_of_memory(**size, available=5 * 2**30)
    assert wrong.argument == "seq_len" and wrong.rule.startswith(
        "memory ran out: [N, H, L, S] = [2, 8, 5000, 5000] would take "
    )
    offered = dict(next(iter(change.items())) for change in wrong.nearest)
    assert 0 < offered["seq_len"] < 5000 and offered["batch_size"] == 1
    check_memory(**size | {"L": offered["seq_len"], "S": offered["seq_len"]}, available=5 * 2**30)


def test_what_ran_out_of_memory_never_offers_its_own_size():
    """Even where much is free again by the time it is told."""
    wrong = out_of_memory(1, 8, 5000, 5000, 64, available=2**50)
    assert all(change.get("seq_len", 0) < 5000 for change in wrong.nearest) and wrong.nearest


def test_errors_of_another_kind_pass():
    with pytest.raises(RuntimeError, match="shapes"), room.in_memory(1, 1, 2, 2, 4):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(Wrong, match="memory ran out") as caught, room.in_memory(1, 1, 2, 2, 4):
        raise MemoryError
    assert isinstance(caught.value.__cause__, MemoryError)


@pytest.mark.parametrize("kind", [MemoryError, lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_tensor_that_memory_runs_out_for_is_wrong_with_a_size(kind):
    def make(name):
        raise kind()

    whole = attend(Layer.random(8, 2, seed=1), Batch(np.ones((2, 6, 8), np.float32)))
    trace = Trace({"weights": make}, layer=whole.layer, batch=whole.batch)
    with pytest.raises(Wrong, match="memory ran out"):
        _ = trace.weights
    assert Trace({"weights": lambda name: whole.weights}, layer=whole.layer, batch=whole.batch).weights is whole.weights
    maps = Trace({"weights": make})
    with pytest.raises((MemoryError, RuntimeError)):
        _ = maps.weights


def test_a_command_that_memory_runs_out_for_says_so(monkeypatch, capsys):
    def run(given):
        raise MemoryError

    monkeypatch.setattr(COMMANDS["validate"], "run", run)
    assert main(["validate"]) == 2 and "memory ran out" in capsys.readouterr().err
