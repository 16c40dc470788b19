"""GGUF's scales and minima as the scales and zero points of ONNX's MatMulNBits."""

import numpy as np

BLOCK = 32  # columns that share a scale


def integer_zero_points(
    packed: np.ndarray, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn q * scale + minimum into (q - zero point) * scale, in MatMulNBits' layout.

    packed: u8 [N, K/2], scales: f16 [N, K/32, 2] → u8 [N, K/2], f32 [N, K/32], u8 [N, K/64].
    WebGPU's kernel takes integer zero points, so they are rounded; a block that does not straddle
    zero has none in 0..15 and is quantised anew.
    """
    rows, groups = scales.shape[:2]
    nibbles = np.stack((packed & 15, packed >> 4), -1).reshape(rows, groups, BLOCK)
    scale, minimum = scales[..., 0].astype(np.float32), scales[..., 1].astype(np.float32)
    zero = np.round(np.divide(-minimum, scale, out=np.zeros_like(scale), where=scale != 0))
    outside = (zero < 0) | (zero > 15)
    if outside.any():
        values = nibbles[outside] * scale[outside][:, None] + minimum[outside][:, None]
        low, high = values.min(-1).clip(max=0), values.max(-1).clip(min=0)
        scale[outside] = step = (high - low) / 15
        zero[outside] = np.round(-low / step)
        again = np.round(values / step[:, None]) + zero[outside][:, None]
        nibbles[outside] = again.clip(0, 15)
    zeros = np.pad(zero.astype(np.uint8), ((0, 0), (0, groups % 2)))
    pairs = nibbles.reshape(rows, -1)
    return pairs[:, 0::2] | pairs[:, 1::2] << 4, scale, zeros[:, 0::2] | zeros[:, 1::2] << 4
