"""Generation, from a prompt to an answer: sessions, sampling loops, OpenAI's requests."""
