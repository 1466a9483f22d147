"""Recordings: every attention call of one run, and the files that keep them."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from mha_viz.core.attend import call_of, trace_of_call
from mha_viz.core.call import Call
from mha_viz.core.intervention import Intervention, changed
from mha_viz.core.json_text import parse_json
from mha_viz.core.maps import CLOSE, trace_of_maps
from mha_viz.core.mask import Mask
from mha_viz.core.rules import Wrong, of_kind
from mha_viz.core.tokens import Parts, Tokens
from mha_viz.core.trace import Trace
from mha_viz.stored.numpy_files import stored_npz, zip_of
from mha_viz.stored.parts import check_call, check_recording
from mha_viz.stored.safetensors_files import stored_safetensors
from mha_viz.stored.stored import MOST_OPENED, Stored, check_count, check_size, reading, room_to_read

FORMAT = "mha_viz recording 1"
HELD = "recording"  # the array of an NPZ that holds the same as the other file, as bytes
FEWER = "Record less: mv.record(model, layers=…, steps=…)."


@dataclass(frozen=True)
class Cause:
    """Why something became NaN or infinite: a sentence, and the ``trace`` where it did, by its place in the recording.

    ``item``, ``head``, ``query`` lead there. What cannot be said is None; so is ``trace`` where it was outside attention.
    """

    trace: int | None
    sentence: str
    item: int | None = None
    head: int | None = None
    query: int | None = None


@dataclass(eq=False)
class Recording:
    """Every attention call of one run, in order: ``traces``, each with the ``name`` of its module.

    While ``record`` records it is empty; it is filled when the run ends.

    ``notes`` are sentences about the recording itself: what it left out, what it changed. ``cause`` is None where all is finite, or
    where nobody looked. ``address`` is that of the page whose settings made it, from the "?" on, "" where it was recorded.

    >>> import torch, mha_viz as mv
    >>> model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True))
    >>> with mv.record(model) as recording:
    ...     _ = model(torch.zeros(1, 3, 8))
    >>> [(trace.name, trace.shape) for trace in recording.traces]
    [('0.self_attn', (1, 2, 3, 3))]
    """

    traces: tuple[Trace, ...]
    notes: tuple[str, ...] = ()
    cause: Cause | None = None
    address: str = ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that ``load`` reads, of the kind that its name ends in.

        ``.safetensors`` holds q, k, v, masks and what is known around them, or the maps alone; ``.npz`` that and every tensor of each Trace
        besides, by its name ("weights"; of several Traces "0.weights", …), and "query_padding", "out_weight" and "out_bias" where they
        are known.

        Raises Wrong for more Traces than ``load`` opens, and where heads were put off in maps alone.
        """
        from safetensors.numpy import save_file

        if len(self.traces) > MOST_OPENED:
            rule = f"a file of at most {MOST_OPENED:,} can be opened again. Save a part, Recording(traces[:{MOST_OPENED}]). {FEWER}"
            raise Wrong("traces", len(self.traces), rule)
        temporary = Path(f"{path}.part")  # nothing half-written is ever found under the name itself
        try:
            if Path(path).suffix == ".npz":
                with temporary.open("wb") as file:
                    np.savez(file, allow_pickle=False, **self._arrays())
            else:
                tensors, metadata = self._parts()
                save_file(tensors, temporary, metadata)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _arrays(self) -> dict[str, np.ndarray]:
        """By name, every tensor of each Trace as NumPy holds it, its tokens, and this recording as bytes."""
        from safetensors.numpy import save

        found = {HELD: np.frombuffer(save(*self._parts()), np.uint8)}
        for i, trace in enumerate(self.traces):
            before = f"{i}." if len(self.traces) > 1 else ""
            known = {name: getattr(trace, name) for name in Trace.fields() if trace.has(name)}
            known |= {"query_tokens": np.array(trace.query_tokens), "key_tokens": np.array(trace.key_tokens)}
            known["query_padding"] = trace.query_padding
            known |= dict(zip(("out_weight", "out_bias"), trace.out_proj or (), strict=False))
            found |= {f"{before}{name}": array for name, array in known.items() if array is not None}
        return found

    def _parts(self) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """(arrays by name, metadata) as safetensors takes them."""
        tensors, calls = dict[str, np.ndarray](), list[dict[str, Any]]()
        for i, trace in enumerate(self.traces):
            kept, described = _taken_apart(trace)
            tensors |= {f"{i}.{name}": np.ascontiguousarray(array) for name, array in kept.items()}
            calls.append(described)
        cause = self.cause and vars(self.cause)
        about = {"format": FORMAT, "calls": calls, "notes": self.notes, "cause": cause, "address": self.address}
        return tensors, {"mha_viz": json.dumps(about, ensure_ascii=False)}


def load(path: str | os.PathLike[str]) -> Recording:
    """The Recording in a file that ``save`` wrote, ``.safetensors`` or ``.npz``; raises Wrong for any other file.

    >>> import os, tempfile, mha_viz as mv
    >>> trace = mv.synthetic(mv.Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=3, padding=()))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mv.Recording((trace,), notes=("a seeded layer",)).save(os.path.join(folder, "run.safetensors"))
    ...     again = mv.load(os.path.join(folder, "run.safetensors"))
    >>> again.notes, bool((again.traces[0].weights == trace.weights).all())
    (('a seeded layer',), True)
    """
    name, data = str(path), Path(of_kind("path", path, str | os.PathLike))
    with reading(name):
        with data.open("rb") as file:
            zipped = file.read(2) == b"PK"
        size = data.stat().st_size
    if zipped:
        with zip_of(name, data) as archive:
            return recording_of_npz(name, archive, size)
    return recording_of(name, *stored_safetensors(name, data, size), size)


def recording_of_npz(name: str, archive: zipfile.ZipFile, size: int) -> Recording:
    """The Recording that an NPZ of ``size`` bytes, an open zip ``archive``, holds beside its tensors; raises Wrong for any other."""
    stored = stored_npz(name, archive, size, HELD).get(HELD)
    if stored is None:
        raise Wrong("file", name, "holds arrays and no recording: recording.save(…) writes one.")
    if stored.dtype != "uint8" or len(stored.shape) != 1:
        raise Wrong(
            "file", name, f"is a recording whose bytes are {list(stored.shape)} {stored.dtype}: must be uint8, one axis."
        )
    with room_to_read(name, stored.shape[0]):
        with reading(name):
            data = stored.load().tobytes()
        return recording_of(name, *stored_safetensors(name, data, len(data)), len(data))


def recording_of(name: str, tensors: Mapping[str, Stored], metadata: Mapping[str, Any] | None, size: int) -> Recording:
    """The Recording in the Stored ``tensors`` and the metadata of a safetensors file of ``size`` bytes; raises Wrong for any other."""
    if not is_recording(metadata):
        raise Wrong("file", name, "holds tensors and no recording: recording.save(…) writes one.")
    check_size(name, size)
    by_call = _by_call(tensors)
    check_count(name, len(by_call), "attention calls", FEWER)
    about = parse_json("file", metadata["mha_viz"], name)
    written = about.get("format") if isinstance(about, dict) else None
    if written != FORMAT:
        raise Wrong("file", name, f"is called a recording, and has the format {written!r}; this version reads {FORMAT!r}.")
    with room_to_read(name, size), reading(name), _fitting(name):
        for part, kind in (("calls", list), ("notes", list)):
            if not isinstance(about.get(part), kind):
                raise Wrong(part, about.get(part), "must be a list.")
        traces = []
        for i, described in enumerate(about["calls"]):
            arrays = {key: stored.load() for key, stored in by_call.get(str(i), {}).items()}
            traces.append(_put_together(f"calls[{i}]", arrays, described))
        check_recording(about, [trace.shape for trace in traces])
    cause = about.get("cause") and Cause(**about["cause"])
    return Recording(tuple(traces), tuple(about["notes"]), cause, about.get("address", ""))  # older files lack the last


@contextlib.contextmanager
def _fitting(name: str) -> Iterator[None]:
    """Within it a Wrong is about parts of the recording in the file called ``name``."""
    try:
        yield
    except Wrong as wrong:
        raise Wrong("file", name, f"is a recording whose parts do not fit each other: {wrong}") from wrong


def is_recording(metadata: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """True for the metadata of a safetensors file that ``save`` wrote."""
    return "mha_viz" in (metadata or {})


def _by_call(tensors: Mapping[str, Stored]) -> dict[str, dict[str, Stored]]:
    """The Stored of each call by name, by the call's number as text."""
    found: dict[str, dict[str, Stored]] = {}
    for key, stored in tensors.items():
        call, _, name = key.partition(".")
        found.setdefault(call, {})[name] = stored
    return found


def _taken_apart(trace: Trace) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays by name, the rest as JSON) of one Trace."""
    arrays = {"query_padding": trace.query_padding}
    positions = trace.tokens.positions
    described: dict[str, Any] = {
        "name": trace.name,
        "queries": trace.query_tokens,
        "keys": trace.key_tokens,
        "extra": trace.tokens.extra,
        "off": trace.off,
        "positions": None if positions is None else positions.tolist(),
        "step": trace.step,
        "parts": trace.tokens.parts and vars(trace.tokens.parts),
    }
    if not trace.has("q", "k"):
        if trace.off:  # from the maps that were put there nobody can tell the head's own, or its mask
            raise Wrong(
                "off", trace.off, "cannot be kept of maps alone: save the recording that they were put off in.", [{"off": ()}]
            )
        maps = {"weights": trace.probabilities}
        maps |= {} if trace.weights is trace.probabilities else {"used": trace.weights}
        return arrays | maps, described | {"dtype": trace.dtype}
    call = call_of(trace)
    if trace.training and trace.keep_scale is not None:
        arrays["keep_scale"] = trace.keep_scale
    for name in ("q", "k", "v", "out_weight", "out_bias"):
        if getattr(call, name) is not None:
            arrays[name] = getattr(call, name)
    mask = call.mask
    arrays |= {name: getattr(mask, name) for name in ("padded", "dense", "bias") if getattr(mask, name) is not None}
    described |= {"scale": call.scale, "without_key": call.without_key}
    described["mask"] = {n: getattr(mask, n) for n in ("num_queries", "num_keys", "extra", "causal", "window")}
    if np.isfinite(mask.number):  # JSON has no −∞, which it is otherwise
        described["mask"]["number"] = mask.number
    return arrays, described


def _put_together(place: str, arrays: Mapping[str, np.ndarray], described: Mapping[str, Any]) -> Trace:
    """The Trace that ``_taken_apart`` took apart; heads that were off are put off again. ``place`` names the call in a Wrong."""
    check_call(place, described, arrays)
    off = described.get("off")  # files of before there were Interventions lack it
    trace = _computed(arrays, described)
    return changed(trace, Intervention(off)) if off else trace


def _computed(arrays: Mapping[str, np.ndarray], described: Mapping[str, Any]) -> Trace:
    queries, keys = (tuple(map(tuple, described[side])) for side in ("queries", "keys"))
    positions = described["positions"]
    parts = described.get("parts")  # older files lack it
    tokens = Tokens(
        queries,
        keys,
        arrays["query_padding"],
        described["extra"],
        None if positions is None else np.array(positions),
        parts=parts and Parts(parts["kind"], parts["whole"], tuple(map(tuple, parts["places"]))),
    )
    name, step = described["name"], described.get("step")  # older files lack the last, and what else is asked for with get
    if "weights" in arrays:
        close, dtype = max(CLOSE.values()), described.get("dtype")
        return trace_of_maps(arrays["weights"], tokens, name, close, dtype, arrays.get("used"), step)
    call = Call(
        arrays["q"],
        arrays["k"],
        arrays.get("v"),
        mask=replace(
            Mask(**described["mask"]), padded=arrays.get("padded"), dense=arrays.get("dense"), bias=arrays.get("bias")
        ),
        scale=described["scale"],
        out_weight=arrays.get("out_weight"),
        out_bias=arrays.get("out_bias"),
        tokens=tokens,
        name=name,
        without_key=described.get("without_key", "nan"),
        step=step,
    )
    # later: what is too long to be seen whole can be pooled
    return trace_of_call(call, keep_scale=arrays.get("keep_scale"), later=True)
