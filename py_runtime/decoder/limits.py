"""The largest sizes that a model may claim, in whatever file it comes."""

# Beyond these nothing fits a page, or a table of it a computer.
MAX_LAYERS = 512
MAX_WIDTH = 1 << 16  # columns between layers
MAX_HEADS = 1 << 12
MAX_HEAD_DIM = 1 << 12
MAX_HIDDEN = 1 << 18  # of an MLP, or of an expert
MAX_PER_LAYER = 1 << 12  # columns that a token has for each layer
MAX_TAPS = 64  # of a convolution
MAX_CONTEXT = 1 << 30
# Bounds of numbers: bases of rotary frequencies, and whatever multiplies or caps.
THETAS = (2.0, 1e12)
SCALES = (1e-6, 1e6)
# As the kernels have them, which nothing here knows: tests/decoder/test_limits.py compares.
MAX_EXPERTS, MAX_USED = 512, 64  # of a mixture, by a token
MAX_KEYS = 256  # columns of a delta net's key
MAX_STATE = 256  # rows of a Mamba-2 head's state
