"""The scripts that Python loads are what js/src says: their heads hold a digest, so that this is known without Node."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JS = ROOT / "js"
BUNDLES = sorted((ROOT / "mha_viz").rglob("*.js"))


def digest(bundled):
    """Of all sources, and of the bundle below its head: as js/bundle.js has it."""
    paths = {path.relative_to(JS).as_posix(): path for path in (JS / "src").rglob("*.js")}
    texts = [f"{name}\n{paths[name].read_text('utf-8')}" for name in sorted(paths)]
    return hashlib.sha256("".join([*texts, bundled]).encode()).hexdigest()


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.name)
def test_a_bundle_is_of_these_sources(path):
    """Where it is not: make bundle."""
    made, said, bundled = path.read_text("utf-8").split("\n", 2)
    entry = ROOT / made.removeprefix("// Bundled from ").partition(" ")[0]
    assert entry.is_file() and said == f"// sha256 {digest(bundled)}"


def test_a_bundle_that_was_changed_by_hand_is_known():
    bundled = BUNDLES[0].read_text("utf-8").split("\n", 2)[2]
    assert digest(bundled) != digest(bundled.replace("function", "function ", 1))


@pytest.mark.skipif(
    not (shutil.which("node") and (JS / "node_modules").is_dir()), reason="make test-js installs what this needs"
)
def test_a_bundle_is_what_esbuild_makes():
    done = subprocess.run(["node", "bundle.js", "--check"], cwd=JS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_lock_names_no_registry():
    assert '"resolved"' not in JS.joinpath("package-lock.json").read_text("utf-8"), "js/.npmrc leaves addresses out"
