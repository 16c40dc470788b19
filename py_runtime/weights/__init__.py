"""Where constants come from: arrays or files, streamed into GPU buffers."""
