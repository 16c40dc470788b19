"""From a prompt to an answer: sessions, sampling loops, and requests in OpenAI's words."""
