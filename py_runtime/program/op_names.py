"""Names of ops that several rooms look for; each is registered in py_runtime/ops."""

SELECT = "aten.select_copy.int"
MUL, ADD = "aten.mul.Tensor", "aten.add.Tensor"
RMS_NORM = "et_vk.rms_norm.default"
SILU, GELU = "aten.silu.default", "aten.gelu.default"
LINEAR, LINEAR_Q4GSW = "aten.linear.default", "et_vk.linear_q4gsw.default"
EXPERTS = "inpage.experts.default"
# Attention that fills its caches first, over all positions or those of a window.
SDPA, WINDOWED = "sdpa_with_kv_cache.default", "inpage.windowed_attention.default"
# The same where a call's first tokens may be those of an image, which see each other.
OF_IMAGES = "inpage.image_attention.default"
FILLING = (SDPA, WINDOWED, OF_IMAGES)
QKV_ROTARY_CACHE = "inpage.qkv_rotary_cache.default"  # fills caches for attention behind it
# Attention over caches that were filled before.
ATTEND_KV_CACHE, ATTEND_WINDOW = "inpage.attend_kv_cache.default", "inpage.attend_window.default"
ATTEND_IMAGES = "inpage.attend_images.default"
ATTEND = (ATTEND_KV_CACHE, ATTEND_WINDOW, ATTEND_IMAGES)
