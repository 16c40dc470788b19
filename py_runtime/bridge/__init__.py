"""Calls into JavaScript: streams of bytes and this browser's files. In the page only."""
