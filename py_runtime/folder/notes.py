"""Notes of the engine to itself, kept as this platform can: by the browser, or the process."""

from py_runtime.base.platform import IN_PAGE

if IN_PAGE:
    from py_runtime.folder.browser_notes import platform_name, read_note, write_note
else:
    from py_runtime.folder.process_notes import platform_name, read_note, write_note

__all__ = ["platform_name", "read_note", "write_note"]
