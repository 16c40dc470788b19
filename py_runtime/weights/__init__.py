"""Sources of constants: arrays or files, streamed into GPU buffers."""
