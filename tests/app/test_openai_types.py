"""web/inpage.d.ts beside the types of OpenAI's own client for JavaScript, as tsc sees them."""

import subprocess

import pytest

from tools.files import ROOT

pytestmark = pytest.mark.built

STRICT = (
    *("--noEmit", "--strict", "--skipLibCheck", "--target", "esnext", "--lib", "esnext,dom"),
    *("--module", "esnext", "--moduleResolution", "bundler", "--types", "node"),
)


def test_openais_types_fit() -> None:
    command = [str(ROOT / "node_modules/.bin/tsc"), *STRICT, "tests/app/openai_types.ts"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout + found.stderr == ""
