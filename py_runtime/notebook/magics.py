"""The one command of notebooks that is not Python: `%pip install …`."""

import re

INSTALL = re.compile(r"[%!]pip\s+install\s+(?P<wanted>\S.*)")


def parted(code: str) -> tuple[list[list[str]], str]:
    """Part code into what is to be installed first and Python, whose lines keep their numbers."""
    commands = []
    lines = code.split("\n")
    for at, line in enumerate(lines):
        found = INSTALL.fullmatch(line.strip())
        if found:
            words = found["wanted"].split()
            commands.append([word for word in words if not word.startswith("-")])
            lines[at] = ""
    return commands, "\n".join(lines)
