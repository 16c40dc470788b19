"""Chat templates: from messages to the text a model was trained to continue."""
