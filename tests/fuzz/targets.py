"""Every reader of what users bring. Of the page, chats and settings are read in tests/web."""

from tests.fuzz import (
    adapter_targets,
    autoencoder_targets,
    encoder_targets,
    export_targets,
    folder_targets,
    gguf_targets,
    hub_targets,
    image_targets,
    pte_targets,
    rendering_targets,
    request_targets,
    text_targets,
)

ROWS = [
    *folder_targets.TARGETS,
    *pte_targets.TARGETS,
    *gguf_targets.TARGETS,
    *adapter_targets.TARGETS,
    *autoencoder_targets.TARGETS,
    *encoder_targets.TARGETS,
    *hub_targets.TARGETS,
    *image_targets.TARGETS,
    *text_targets.TARGETS,
    *request_targets.TARGETS,
    *export_targets.TARGETS,
    *rendering_targets.TARGETS,
]
TARGETS = {target.name: target for target in ROWS}
