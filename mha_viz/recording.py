"""Recordings: every attention call of one run, and the files that keep them."""

import io
import json
import os
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

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
from mha_viz.stored.numpy_files import stored_npz
from mha_viz.stored.parts import check_call, check_recording
from mha_viz.stored.safetensors_files import stored_safetensors
from mha_viz.stored.stored import check_size, reading

FORMAT = "mha_viz recording 1"
HELD = "recording"  # the array of an NPZ that holds the same as the other file, as bytes


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
    """

    traces: tuple[Trace, ...]
    notes: tuple[str, ...] = ()
    cause: Cause | None = None
    address: str = ""

    def save(self, path):
        """Write a file that ``load`` reads: ``.safetensors`` holds q, k, v, masks and what is known around them, or the maps alone;
        ``.npz`` that and every tensor of each Trace besides, by its name ("weights"; of several Traces "0.weights", …), and
        "query_padding", "out_weight" and "out_bias" where they are known.

        Raises Wrong where heads were put off in maps alone.
        """
        from safetensors.numpy import save_file

        temporary = Path(f"{path}.part")  # nothing half-written is ever found under the name itself
        try:
            if Path(path).suffix == ".npz":
                with temporary.open("wb") as file:
                    np.savez(file, **self._arrays())
            else:
                tensors, metadata = self._parts()
                save_file(tensors, temporary, metadata)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _arrays(self):
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

    def _parts(self):
        """(arrays by name, metadata) as safetensors takes them."""
        tensors, calls = {}, []
        for i, trace in enumerate(self.traces):
            kept, described = _taken_apart(trace)
            tensors |= {f"{i}.{name}": np.ascontiguousarray(array) for name, array in kept.items()}
            calls.append(described)
        cause = self.cause and vars(self.cause)
        about = {"format": FORMAT, "calls": calls, "notes": self.notes, "cause": cause, "address": self.address}
        return tensors, {"mha_viz": json.dumps(about, ensure_ascii=False)}


def load(path):
    """The Recording in a file that ``save`` wrote; raises Wrong for any other file."""
    return read_recording(str(path), Path(of_kind("path", path, str | os.PathLike)))


def read_recording(name, data):
    """The Recording in the file called ``name``, given as its bytes or its path; raises Wrong for any other file."""
    tensors, about = _read(name, data)
    try:
        for part, kind in (("calls", list), ("notes", list)):
            if not isinstance(about.get(part), kind):
                raise Wrong(part, about.get(part), "must be a list.")
        arrays = _by_call(tensors)
        traces = tuple(_put_together(f"calls[{i}]", arrays.get(str(i), {}), one) for i, one in enumerate(about["calls"]))
        check_recording(about, [trace.shape for trace in traces])
    except Wrong as wrong:
        raise Wrong("file", name, f"is a recording whose parts do not fit each other: {wrong}") from wrong
    cause = about.get("cause") and Cause(**about["cause"])
    return Recording(traces, tuple(about["notes"]), cause, about.get("address", ""))  # older files lack the last


def is_recording(metadata):
    """True for the metadata of a safetensors file that ``save`` wrote."""
    return "mha_viz" in (metadata or {})


def _read(name, data):
    """(arrays by name, what describes them) of a recording."""
    with reading(name):
        with io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as file:
            start, size = file.read(8), file.seek(0, io.SEEK_END)
            if start.startswith(b"PK"):
                data = _of_npz(name, file, size)
                size = len(data)
        tensors, metadata = stored_safetensors(name, data, size)
    if not is_recording(metadata):
        raise Wrong("file", name, "holds tensors and no recording: recording.save(…) writes one.")
    check_size(name, size)
    about = parse_json("file", metadata["mha_viz"], name)
    written = about.get("format") if isinstance(about, dict) else None
    if written != FORMAT:
        raise Wrong("file", name, f"is called a recording, and has the format {written!r}; this version reads {FORMAT!r}.")
    with reading(name):
        return {key: stored.load() for key, stored in tensors.items()}, about


def _of_npz(name, file, size):
    """The bytes of the recording that an NPZ holds beside its tensors."""
    with zipfile.ZipFile(file) as archive:
        stored = stored_npz(name, archive, size).get(HELD)
        if stored is None:
            raise Wrong("file", name, "holds arrays and no recording: recording.save(…) writes one.")
        if stored.dtype != "uint8" or len(stored.shape) != 1:
            raise Wrong("file", name, f"is a recording whose bytes are {list(stored.shape)} {stored.dtype}: must be uint8, one axis.")
        return stored.load().tobytes()


def _by_call(tensors):
    """{number of the call: {name: array}}, the number as text."""
    found = {}
    for key, array in tensors.items():
        call, _, name = key.partition(".")
        found.setdefault(call, {})[name] = array
    return found


def _taken_apart(trace):
    """(arrays by name, the rest as JSON) of one Trace."""
    arrays = {"query_padding": trace.query_padding}
    positions = trace.tokens.positions
    described = {
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


def _put_together(place, arrays, described):
    """The Trace that ``_taken_apart`` took apart; heads that were off are put off again. ``place`` names the call in a Wrong."""
    check_call(place, described, arrays)
    off = described.get("off")  # files of before there were Interventions lack it
    trace = _computed(arrays, described)
    return changed(trace, Intervention(off)) if off else trace


def _computed(arrays, described):
    queries, keys = (tuple(map(tuple, described[side])) for side in ("queries", "keys"))
    positions = described["positions"]
    parts = described.get("parts")  # older files lack it
    tokens = Tokens(
        queries, keys, arrays["query_padding"], described["extra"], None if positions is None else np.array(positions),
        parts=parts and Parts(parts["kind"], parts["whole"], tuple(map(tuple, parts["places"]))),
    )  # fmt: skip
    if "weights" in arrays:
        about = {"dtype": described.get("dtype"), "used": arrays.get("used"), "step": described.get("step")}  # older files lack them
        return trace_of_maps(arrays["weights"], tokens, described["name"], max(CLOSE.values()), **about)
    mask = replace(Mask(**described["mask"]), **{name: arrays.get(name) for name in ("padded", "dense", "bias")})
    known = {name: arrays.get(name) for name in ("v", "out_weight", "out_bias")}
    known |= {name: described[name] for name in ("scale", "name")}
    known |= {"without_key": described.get("without_key", "nan"), "step": described.get("step")}  # older files lack both
    call = Call(arrays["q"], arrays["k"], **known, mask=mask, tokens=tokens)
    return trace_of_call(call, keep_scale=arrays.get("keep_scale"), later=True)  # what is too long to be seen whole can be pooled
