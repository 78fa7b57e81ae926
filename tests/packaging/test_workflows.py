"""The workflows of GitHub Actions are sound, and give their steps no more than these need."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_zizmor_has_nothing_to_say() -> None:
    # Beside the interpreter, whether or not its environment is activated.
    zizmor = shutil.which("zizmor", path=Path(sys.executable).parent)
    if zizmor is None:
        pytest.skip("could not import zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", ROOT / ".github"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_of_others_are_pinned_to_commits_of_named_versions(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for action, rest in used:
        assert action.startswith("./") or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert action.startswith("./") or re.fullmatch(r" # v\d+\.\d+\.\d+", rest), f"{action}{rest}"


def test_what_is_published_needs_the_tests_and_the_wheels_of_the_same_commit() -> None:
    yaml = pytest.importorskip("yaml")
    workflows: dict[str, Any] = {
        path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS
    }
    jobs = workflows["release.yml"]["jobs"]
    (publish,) = (job for job in jobs.values() if "gh-action-pypi-publish" in str(job))
    called = {Path(jobs[name]["uses"]).name for name in publish["needs"]}
    assert called == {"tests.yml", "wheels.yml"}
    for name in called:
        assert "workflow_call" in workflows[name][True]  # YAML's `on`


def test_a_release_has_the_section_of_its_version_in_the_changelog_with_links_that_work_elsewhere() -> None:
    version = importlib.metadata.version("flinkcore")
    address = {"GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "owner/name"}
    program = [sys.executable, ROOT / ".ci" / "release_notes.py"]
    done = subprocess.run([*program, version], env=address, capture_output=True, text=True, check=True)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    written = changelog.partition(f"## [{version}]")[2].partition("\n")[2].partition("\n## ")[0]
    links = re.compile(r"\]\((?!https://)([^)]*)")
    assert [link for link in links.findall(written) if not (ROOT / link.partition("#")[0]).exists()] == []
    assert done.stdout == links.sub(rf"](https://host/owner/name/blob/v{version}/\1", written).strip() + "\n"
    unknown = subprocess.run([*program, "0.0"], env=address, capture_output=True, text=True, check=False)
    assert (unknown.returncode, unknown.stderr) == (1, "CHANGELOG.md has no section '## [0.0]' with text\n")


def test_the_tests_run_on_each_python_that_has_wheels_and_the_metadata_name_no_other() -> None:
    yaml = pytest.importorskip("yaml")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (wheels,) = re.findall(r"^build = (.*)$", project, re.MULTILINE)
    pythons = [f"3.{minor}" for minor in re.findall(r"cp3(\d+)-", wheels)]
    assert re.findall(r"Python :: (3\.\d+)", project) == pythons
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    matrix = tests["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == pythons
    everything = [each["python"] for each in matrix["include"] if each["folders"] == "tests"]
    assert everything == [pythons[0], pythons[-1]]
    assert re.findall(r'^requires-python = ">=(.*)"$', project, re.MULTILINE) == pythons[:1]


@pytest.mark.parametrize("folder", ["unit", "conformance", "property"])
def test_what_wheels_are_tested_with_on_macos_takes_what_linux_alone_has_from_equipment(folder: str) -> None:
    """There a test that asks for it is skipped: `tests/equipment/process_limits.py`."""
    linux = re.compile(r"/proc/|RLIMIT_AS|ru_maxrss|sched_getaffinity|memfd_create|prctl")
    found = [
        path.name for path in (ROOT / "tests" / folder).rglob("*.py") if linux.search(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("programs", "named", "found"),
    [
        (["chromium", "google-chrome"], None, "chromium"),
        (["google-chrome"], None, "google-chrome"),
        (["chromium", "chrome-beta"], "chrome-beta", "chrome-beta"),
        (["apt-get", "sudo"], None, "chromium"),
        (["apt-get", "sudo", "google-chrome"], "nowhere", None),
        ([], None, None),
    ],
)
def test_the_nightly_tests_pages_in_a_browser_that_it_installs_where_there_is_none(
    programs: list[str], named: str | None, found: str | None, tmp_path: Path
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    commands = {"apt-get": f'cp "$0" {tmp_path / "chromium"}', "sudo": '"$@"'}
    for name in programs:
        (tmp_path / name).write_text(f"#!{bash}\n{commands.get(name, '')}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for name in ("cp", "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    environment = {"PATH": str(tmp_path)} | ({} if named is None else {"FLINKCORE_BROWSER": named})
    done = subprocess.run(
        [bash, ROOT / ".ci" / "browser"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == ("" if found is None else f"{tmp_path / found}\n")
    assert (done.returncode == 0) == (found is not None)
    nightly = (ROOT / ".ci" / "nightly").read_text(encoding="utf-8")
    assert "FLINKCORE_BROWSER=$(.ci/browser) || exit 2\nexport FLINKCORE_BROWSER\n" in nightly
