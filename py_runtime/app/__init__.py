"""The engine as people meet it: in the page, in a terminal, in OpenAI's words."""
