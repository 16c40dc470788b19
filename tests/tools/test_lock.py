"""pyproject.toml gives ranges, requirements.lock the exact versions that set-up and CI install."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tools.test_makefile import steps_of
from tools.files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [
    Requirement(text) for texts in (PROJECT["dependencies"], *EXTRAS.values()) for text in texts
]
LINES = [
    line.partition(" #")[0].strip()
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if not line.startswith("#")
]
LOCKED = [Requirement(line) for line in LINES]
CUDA = re.compile(r"nvidia-|cuda-|triton$")


def locked_versions(name: str) -> set[Version]:
    """Return the versions of a package that the lock file has for any system and any Python."""
    return {
        Version(specifier.version)
        for requirement in LOCKED
        if requirement.name == canonicalize_name(name)
        for specifier in requirement.specifier
    }


def locked_here(name: str) -> Version | None:
    """Return the version that the lock file has for this system and this Python."""
    for requirement in LOCKED:
        marker = requirement.marker
        if requirement.name == canonicalize_name(name) and (not marker or marker.evaluate()):
            (specifier,) = requirement.specifier
            return Version(specifier.version)
    return None


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_a_direct_dependency_is_a_range_that_holds_the_locked_version(
    requirement: Requirement,
) -> None:
    assert {specifier.operator for specifier in requirement.specifier} == {">=", "<"}
    versions = locked_versions(requirement.name)
    assert versions, "not in requirements.lock: run `make lock`"
    assert all(found in requirement.specifier for found in versions), "run `make lock`"


def test_the_same_package_has_the_same_range_in_every_extra() -> None:
    ranges = {requirement.name: requirement.specifier for requirement in DIRECT}
    assert [str(one) for one in DIRECT if one.specifier != ranges[one.name]] == []


def test_the_lock_file_has_exact_versions_and_names_no_place() -> None:
    for line, requirement in zip(LINES, LOCKED, strict=True):
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], line
        assert requirement.url is None, line
        assert not re.search(r"://|--|/|\+", line), line


def test_checking_the_code_needs_no_torch() -> None:
    assert not any("torch" in requirement for requirement in EXTRAS["dev"])


def test_no_cuda_package_is_locked_for_systems_that_have_none() -> None:
    """A constraint alone installs nothing: a CPU build of torch asks for none of them."""
    cuda = [requirement for requirement in LOCKED if CUDA.match(requirement.name)]
    assert cuda
    for requirement in cuda:
        assert requirement.marker
        for system in ("darwin", "win32"):
            assert not requirement.marker.evaluate({"sys_platform": system}), str(requirement)


def test_what_is_installed_is_what_the_lock_file_says() -> None:
    """Follow the dependencies of all installed extras: each of them has its locked version."""
    pending = [Requirement(f"inpage[{','.join(EXTRAS)}]")]
    seen: set[tuple[str, str]] = set()
    wrong = []
    while pending:
        wanted = pending.pop()
        for extra in ("", *wanted.extras):
            if (wanted.name, extra) in seen:
                continue
            seen.add((wanted.name, extra))
            try:
                needed = [Requirement(text) for text in requires(wanted.name) or []]
            except PackageNotFoundError:  # of an extra that is not installed here
                continue
            pending += [
                one for one in needed if not one.marker or one.marker.evaluate({"extra": extra})
            ]
            if wanted.name == "inpage":
                continue
            installed = Version(Version(version(wanted.name)).public)  # torch may be 2.13.0+cpu
            if locked_here(wanted.name) != installed:
                wrong.append(f"{wanted.name}: {installed} is not {locked_here(wanted.name)}")
    assert len(seen) > 20
    assert wrong == []


@pytest.mark.parametrize("target", ["check", "setup", "test", "test-pte"])
def test_set_up_installs_the_locked_versions(target: str) -> None:
    installs = [line for line in steps_of(target).splitlines() if "--editable" in line]
    assert installs
    for line in installs:
        assert line.startswith(
            "PIP_CONSTRAINT=requirements.lock PIP_BUILD_CONSTRAINT=requirements.lock "
        )
