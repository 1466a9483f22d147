"""What ``torch.save`` wrote, told from its pickle without unpickling: of a fixed list of names, none is ever looked up or called.

Reading a pickle the usual way calls what it names and makes what it claims. Here its opcodes are followed by hand: containers become
dicts, lists and tuples, and a tensor becomes a Claim, so that a file makes nothing larger than itself.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from types import UnionType
from typing import IO, Any, TypeVar, overload

T = TypeVar("T")

# What storages hold, by the class that torch names; UntypedStorage leaves the type to the tensor.
STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": None,
}
REBUILD = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")
WRAPPED = ("_rebuild_parameter", "_rebuild_parameter_with_state")
EMPTY: dict[str, type[dict[Any, Any]] | type[list[Any]]] = {
    "collections.OrderedDict": dict,
    "collections.defaultdict": dict,
    "collections.Counter": dict,
    "builtins.set": list,
}
INERT = (  # no tensor in them
    "torch.Size",
    "torch.device",
    "torch.serialization._get_layout",
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.complex",
)
OTHER = {
    "_rebuild_sparse_tensor": "sparse",
    "_rebuild_qtensor": "quantized",
    "_rebuild_nested_tensor": "nested",
    "_rebuild_meta_tensor_no_storage": "meta",
}
PUSHED = {
    "INT",
    "BININT",
    "BININT1",
    "BININT2",
    "LONG",
    "LONG1",
    "LONG4",
    "FLOAT",
    "BINFLOAT",
    "STRING",
    "BINSTRING",
    "SHORT_BINSTRING",
    "UNICODE",
    "BINUNICODE",
    "SHORT_BINUNICODE",
    "BINUNICODE8",
    "BINBYTES",
    "SHORT_BINBYTES",
    "BINBYTES8",
    "BYTEARRAY8",
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
KEYS = (str, int, float, bool, type(None))
MARK = object()


@dataclass(frozen=True)
class Storage:
    """A storage that the pickle refers to by ``key``: ``count`` numbers of ``dtype``, or so many bytes where that is None."""

    dtype: str | None
    key: str
    count: int


@dataclass(frozen=True)
class Claim:
    """A tensor as the pickle describes it, in elements: nothing says yet that its storage is there, or as large."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class Name:
    """A class or function that the pickle names."""

    text: str


class Refused(Exception):
    """A pickle that holds something else than tensors in containers; its message says what."""


class Unread(Exception):
    """A tensor of a kind that is not read; its message says which, and how to save it so that it is."""


def read_pickle(file: IO[bytes], storages: dict[str, Storage] | None = None) -> Any:
    """The object of the pickle at the position of ``file``: dicts, lists, tuples, numbers, texts, and Claims for tensors.

    Every Storage that it refers to is added to the dict ``storages`` by its key. Raises Refused where the pickle holds anything else,
    Unread for a tensor that is not dense, ValueError and its like where it is damaged.
    """
    stack: list[Any] = []  # what a pickle holds is checked where it is taken
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name == "STOP":
            return stack.pop()
        if name in PUSHED:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "GLOBAL":
            stack.append(_named(str(argument).replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            last, first = stack.pop(), stack.pop()
            stack.append(_named(f"{first}.{last}"))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
            if storages is not None:
                storages[stack[-1].key] = stack[-1]
        elif name not in ("PROTO", "FRAME"):
            _step(name, stack)
    raise ValueError("it ends before its STOP")


def _step(name: str, stack: list[Any]) -> None:
    """One opcode that works on what is on the stack."""
    if name == "MARK":
        stack.append(MARK)
    elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_SET"):
        stack.append({"EMPTY_DICT": {}, "EMPTY_TUPLE": ()}.get(name, []))
    elif name in ("TUPLE", "LIST", "DICT", "FROZENSET"):
        held = _to_mark(stack)
        stack.append(tuple(held) if name in ("TUPLE", "FROZENSET") else held if name == "LIST" else _filled({}, held))
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        count = int(name[-1])
        if MARK in stack[-count:] or len(stack) < count:
            raise ValueError("a tuple lacks its parts")
        stack[-count:] = [tuple(stack[-count:])]
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        held = [stack.pop()] if name == "APPEND" else _to_mark(stack)
        _of_type(stack[-1], list).extend(held)
    elif name in ("SETITEM", "SETITEMS"):
        held = [stack.pop(-2), stack.pop()] if name == "SETITEM" else _to_mark(stack)
        _filled(_of_type(stack[-1], dict), held)
    elif name == "BUILD":  # attributes beside what is held, as a state dict's _metadata: none of them is a weight
        stack.pop()
        if isinstance(stack[-1], Name):
            raise Refused(stack[-1].text)
    elif name == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        stack.append(_made(_of_type(function, Name).text, _of_type(arguments, tuple)))
    elif name == "POP":
        stack.pop()
    elif name == "POP_MARK":
        _to_mark(stack)
    elif name == "DUP":
        stack.append(stack[-1])
    else:
        raise Refused(name)


def _named(text: str) -> Name:
    module, _, last = text.rpartition(".")
    known = (
        text in EMPTY
        or text in INERT
        or (module in ("torch._utils", "torch._tensor") and last in (*REBUILD, *WRAPPED, *OTHER))
        or text in ("torch._tensor._rebuild_from_type_v2", "torch.nn.parameter.Parameter", "torch.Tensor")
        or module == "torch"
        or (module == "torch.storage" and last in STORAGES)
    )
    if not known:
        raise Refused(text)
    return Name(text)


def _made(text: str, arguments: tuple[Any, ...]) -> Any:
    """What a call of the function ``text`` stands for."""
    last = text.rpartition(".")[2]
    if text in EMPTY:
        made: Any = EMPTY[text]()
        for given in arguments:
            if isinstance(given, list) and isinstance(made, dict):
                _filled(made, [part for pair in given for part in _of_type(pair, tuple | list)])
            elif isinstance(given, dict):
                made.update(given)
        return made
    if text in INERT:
        return arguments if text == "torch.Size" else None
    if last in OTHER:
        raise Unread(f"holds a {OTHER[last]} tensor, and only dense ones are read: save it after .to_dense() or .dequantize()")
    if last in WRAPPED:
        return _of_type(arguments[0], Claim)
    if last == "_rebuild_from_type_v2":
        return _made(_of_type(arguments[0], Name).text, _of_type(arguments[2], tuple))
    if last in REBUILD:
        return _claim(last, arguments)
    raise Refused(text)


def _claim(function: str, arguments: tuple[Any, ...]) -> Claim:
    storage, offset, shape, stride, *rest = arguments
    dtype = _of_type(storage, Storage).dtype
    if function == "_rebuild_tensor_v3":
        dtype = _of_type(rest[2], Name).text.removeprefix("torch.")
    flags = rest[-1] if len(rest) > 2 and isinstance(rest[-1], dict) else {}
    if flags.get("neg") or flags.get("conj"):
        raise Unread("holds a tensor that is conjugated or negated when read: save it after .resolve_conj().resolve_neg()")
    shape, stride = _of_type(shape, tuple), _of_type(stride, tuple)
    if (
        len(shape) != len(stride)
        or not all(type(n) is int and 0 <= n < 2**62 for n in (offset, *shape, *stride))
        or dtype is None
    ):
        raise ValueError("a tensor's shape, stride and offset do not fit each other")
    return Claim(storage, dtype, offset, shape, stride)


def _storage(told: object) -> Storage:
    kind, of, key, _, count, *_ = _of_type(told, tuple)
    name = _of_type(of, Name).text.rpartition(".")[2]
    if kind != "storage" or name not in STORAGES or not isinstance(key, str) or type(count) is not int or count < 0:
        raise ValueError("a storage is described by something else than its type, key and size")
    return Storage(STORAGES[name], key, count)


@overload
def _of_type(value: object, kind: type[T]) -> T: ...
@overload
def _of_type(value: T, kind: UnionType) -> T: ...
def _of_type(value: object, kind: type | UnionType) -> object:
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} stands where something else belongs")
    return value


def _to_mark(stack: list[Any]) -> list[Any]:
    held = []
    while (value := stack.pop()) is not MARK:
        held.append(value)
    return held[::-1]


def _filled(into: dict[Any, Any], held: list[Any]) -> dict[Any, Any]:
    """``into`` with these keys and values in turn. A key that is a tuple could take for ever to hash."""
    if len(held) % 2:
        raise ValueError("a key lacks its value")
    for key, value in zip(held[::2], held[1::2], strict=True):
        into[key if type(key) in KEYS else f"({type(key).__name__})"] = value
    return into
