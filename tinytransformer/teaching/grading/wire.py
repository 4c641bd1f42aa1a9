"""What travels between the grader and the box: plain values as JSON text, in both directions.

Nothing is ever unpickled: whatever the other side sends, only numbers, text, lists, dictionaries and tensors come out
here, made by us. Both sides use this file; inside the box it stands alone, so it imports nothing of the package.
"""

import base64
import json
import math

import torch
from torch import Tensor

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64)}  # fmt: skip
# Errors that a task may ask for. All others arrive as plain `Exception`s, so that no name can carry a message out.
ERRORS = {error.__name__: error for error in (
    ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, LookupError, MemoryError, NameError,
    NotImplementedError, OverflowError, RecursionError, RuntimeError, StopIteration, SyntaxError, TypeError,
    UnboundLocalError, ValueError, ZeroDivisionError, ImportError, ModuleNotFoundError, OSError,
    SystemExit)}  # fmt: skip
DEPTH = 20


class WireError(ValueError):
    """What arrived is not what our side would have sent."""


class UnsendableError(Exception):
    """Stands for an answer that is no plain value, such as an object or a function."""


def pack(value: object, depth: int = 0) -> object:
    """A value as JSON can hold it. Everything but lists is marked by a key, so that nothing is mistaken."""
    if depth > DEPTH:
        raise WireError(f"values are nested more than {DEPTH} deep")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else _pack_float(float(value))
    if isinstance(value, Tensor):
        return _pack_tensor(value)
    if isinstance(value, list):
        return [pack(part, depth + 1) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [pack(part, depth + 1) for part in value]}
    if isinstance(value, set | frozenset):
        return {"set": [pack(part, depth + 1) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(key, depth + 1), pack(part, depth + 1)] for key, part in value.items()]}
    if isinstance(value, BaseException):
        return {"error": next((kind.__name__ for kind in type(value).__mro__ if kind.__name__ in ERRORS), "")}
    if type(value).__module__ == "numpy":
        return _pack_tensor(torch.as_tensor(value))
    return {"object": True}


def _pack_float(value: float) -> object:
    return value if math.isfinite(value) else {"float": str(value)}


def _pack_tensor(tensor: Tensor) -> dict:
    plain = tensor.detach().cpu().contiguous()
    name = str(plain.dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise WireError(f"tensors of {plain.dtype} are not sent")
    raw = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    data = base64.b64encode(raw).decode("ascii")
    return {"tensor": name, "shape": list(plain.shape), "data": data, "learns": bool(tensor.requires_grad)}


def unpack(value: object, depth: int = 0) -> object:
    """The value that was packed, made anew. Raises `WireError` for anything that `pack` does not make."""
    if depth > DEPTH:
        raise WireError(f"values are nested more than {DEPTH} deep")
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, list):
        return [unpack(part, depth + 1) for part in value]
    if not isinstance(value, dict):
        raise WireError("not a plain value")
    if "tensor" in value:
        return _unpack_tensor(value)
    if len(value) != 1:
        raise WireError("not a plain value")
    [(kind, inner)] = value.items()
    return _unpack_marked(kind, inner, depth)


def _unpack_marked(kind: str, inner: object, depth: int) -> object:
    if kind == "float" and inner in ("inf", "-inf", "nan"):
        return float(inner)
    if kind == "error" and isinstance(inner, str):
        return ERRORS.get(inner, Exception)()
    if kind == "object":
        return UnsendableError()
    if not isinstance(inner, list):
        raise WireError(f"{kind[:20]!r} without a list")
    try:
        if kind == "tuple":
            return tuple(unpack(part, depth + 1) for part in inner)
        if kind == "set":
            return {unpack(part, depth + 1) for part in inner}
        if kind == "dict":
            return {unpack(key, depth + 1): unpack(part, depth + 1) for key, part in inner}
    except (TypeError, ValueError) as error:
        raise WireError(f"not a {kind}: {error}") from None
    raise WireError(f"{kind[:20]!r} is not known")


def _unpack_tensor(value: dict) -> Tensor:
    try:
        dtype, shape, data = DTYPES[value["tensor"]], value["shape"], value["data"]
        if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 8:
            raise WireError("a tensor of impossible shape")
        raw = bytearray(base64.b64decode(data, validate=True))
        if len(raw) != math.prod(shape) * dtype.itemsize:
            raise WireError("a tensor whose data do not fit its shape")
        if dtype is torch.bool and raw.translate(None, b"\0\1"):
            raise WireError("truth values other than 0 and 1")
        flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
        tensor = flat.clone().reshape(shape)
        return tensor.requires_grad_() if value.get("learns") is True and dtype.is_floating_point else tensor
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"not a tensor: {error}") from None


def dumps(value: object) -> bytes:
    """A packed value as one line."""
    return json.dumps(pack(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def loads(line: bytes) -> object:
    """The value of one line; `WireError` says what is wrong with it."""
    try:
        return unpack(json.loads(line))
    except (ValueError, RecursionError) as error:
        if isinstance(error, WireError):
            raise
        raise WireError(f"not a line of ours: {str(error)[:80]}") from None
