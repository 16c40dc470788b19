"""Suites of ExecuTorch's catalogue whose ops this engine does not have: each is refused by name."""

CONVOLUTION = "convolutions"
POOLING = "pooling"
VISION = "images: sampling, resizing, the norms of convolutional models"
INT8 = "activations of 8 bits with fixed scales"

# Suite: why, and the ops that its files are refused for.
OUT_OF_SCOPE: dict[str, tuple[str, set[str]]] = {
    "conv1d": (CONVOLUTION, {"aten.convolution.default"}),
    "conv1d_dw": (CONVOLUTION, {"aten.convolution.default"}),
    "conv1d_pw": (CONVOLUTION, {"aten.convolution.default"}),
    "conv2d": (CONVOLUTION, {"aten.convolution.default"}),
    "conv_with_clamp": (
        CONVOLUTION,
        {"et_vk.conv_with_clamp.default", "aten::convolution.out"},
    ),
    "avg_pool2d": (POOLING, {"aten.avg_pool2d.default"}),
    "max_pool2d": (POOLING, {"aten.max_pool2d_with_indices.default"}),
    "batch_norm": (VISION, {"aten._native_batch_norm_legit_no_training.default"}),
    "grid_priors": (VISION, {"et_vk.grid_priors.default"}),
    "grid_sampler_2d": (VISION, {"aten.grid_sampler_2d.default"}),
    "upsample_bilinear2d": (VISION, {"aten.upsample_bilinear2d.vec"}),
    "upsample_nearest2d": (VISION, {"aten.upsample_nearest2d.vec"}),
    "linear_q8ta_q8csw": (INT8, {"et_vk.linear_q8ta_q8csw.default"}),
    "q8ta_add": (INT8, {"et_vk.q8ta_add.default"}),
    "q8ta_relu": (INT8, {"et_vk.q8ta_relu.default"}),
    "q8ta_pixel_shuffle": (INT8, {"et_vk.q8ta_pixel_shuffle.default"}),
    "q8ta_linear": (
        INT8,
        {"et_vk.q8ta_linear.default", "et_vk.q8ta_linear_gemv.default"},
    ),
    "q8ta_conv2d": (INT8, {"et_vk.q8ta_conv2d.default"}),
    "q8ta_conv2d_dw": (INT8, {"et_vk.q8ta_conv2d_dw.default"}),
    "q8ta_conv2d_pw": (INT8, {"et_vk.q8ta_conv2d_pw.default"}),
    "q8ta_conv2d_transposed": (
        INT8,
        {"et_vk.q8ta_conv2d_transposed.default"},
    ),
}
