"""Which device and number format to compute in."""

import warnings

import torch
import torch.nn.functional as F

from oasr.errors import DeviceError

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "int8": torch.int8}


def choose_device(device: str, dtype: str) -> tuple[torch.device, torch.dtype]:
    """Turn the configured names into what runs here.

    `auto` takes CUDA when a small forward pass proves that it computes, and the CPU with one warning when it does not.
    float16 on a CPU becomes float32 with a warning; int8 means the weights of `oasr.nn` layers, the rest is float32.
    Raises `DeviceError` with the reason when a device was named and cannot be used, and for int8 on anything but a CPU
    that multiplies integers exactly.
    """
    if device == "auto":
        chosen = _proven_cuda() or torch.device("cpu")
    else:
        chosen = torch.device(device)
        problem = _problem(chosen)
        if problem:
            raise DeviceError(f'Device "{device}" cannot be used: {problem}. Use --device auto or cpu')
    return chosen, _choose_dtype(chosen, dtype)


def _choose_dtype(device: torch.device, dtype: str) -> torch.dtype:
    if dtype == "auto":
        return torch.float16 if device.type == "cuda" else torch.float32
    if dtype == "float16" and device.type == "cpu":
        warnings.warn("float16 is not for CPUs; computing in float32", stacklevel=2)
        return torch.float32
    if dtype == "int8":
        if device.type != "cpu":
            raise DeviceError(
                f"int8 weights are for CPUs, and {device} was chosen. Use --device cpu, or --dtype float16 on a GPU"
            )
        if not multiplies_int8_exactly():
            raise DeviceError("This CPU does not multiply int8 exactly. Use --dtype float32")
    return _DTYPES[dtype]


def _proven_cuda() -> torch.device | None:
    if not torch.cuda.is_available():
        return None
    device = torch.device("cuda", torch.cuda.current_device())
    problem = _problem(device)
    if problem is None:
        return device
    warnings.warn(f"A GPU is present but cannot compute ({problem}); using the CPU", stacklevel=3)
    return None


def _problem(device: torch.device) -> str | None:
    """Why the device cannot compute what a model needs, or None."""
    if device.type == "cuda" and not torch.cuda.is_available():
        return "this PyTorch sees no CUDA device"
    try:
        _tiny_forward(device)
    except Exception as error:  # a build without kernels for the card, a missing library: each raises its own kind
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    return None


def multiplies_int8_exactly() -> bool:
    """Whether products of int8 matrices are exact on this CPU.

    Without instructions made for it, pairs of products may be added in 16 bits, where the largest saturate.
    """
    largest = torch.full((16, 128), 127, dtype=torch.int8)
    products = torch._int_mm(largest, torch.cat((largest, -largest)).t())
    exact = torch.full((16, 16), 128 * 127**2, dtype=torch.int32)
    return torch.equal(products, torch.cat((exact, -exact), dim=1))


def _tiny_forward(device: torch.device) -> None:
    """One of each operation that needs a library of its own: convolution, matrix product, attention, FFT."""
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    x = torch.ones(1, 8, 64, device=device, dtype=dtype)
    x = F.gelu(F.conv1d(x, torch.ones(8, 8, 3, device=device, dtype=dtype), padding=1))
    x = F.layer_norm(F.linear(x, torch.ones(64, 64, device=device, dtype=dtype)), (64,))
    x = F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])
    torch.stft(x.flatten().float(), 16, window=torch.ones(16, device=device), return_complex=True).abs().sum().item()
