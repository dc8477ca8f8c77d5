"""Process that generates the design of a configuration: `python -m spurtle_sim.cosim.generate FUNCTION DIGEST`.

It reads the configuration from its working folder and writes the design there. A process of its own imports the source
files on disk. A program that runs longer may have imported a source file before it was edited.
"""

import gc
import hashlib
import json
import pickle
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["CONFIG", "FILES", "digest"]

CONFIG = "config.pickle"

FILES = "design.json"


def digest() -> str:
    """Return a hash of the sources of both packages, from which a design is generated."""
    sources = hashlib.sha256()
    for package in "spurtle", "spurtle_sim":
        spec = find_spec(package)
        folders = spec.submodule_search_locations if spec else None
        for folder in map(Path, folders or ()):
            for path in sorted(path for suffix in ("py", "json") for path in folder.rglob(f"*.{suffix}")):
                text = path.read_bytes()
                sources.update(f"{package} {path.relative_to(folder)} {len(text)}\n".encode() + text)
    return sources.hexdigest()


def main() -> None:
    """Generate a design. Exit with a message if the digest of the sources is not the expected one."""
    function, expected = sys.argv[1:]
    # The objects of a design remain until the process ends. To scan them in vain takes a fifth of the time.
    gc.disable()
    _check(expected)
    # The sources of the gateware are hashed before they are imported.
    from . import designs

    try:
        files = getattr(designs, function)(pickle.loads(Path(CONFIG).read_bytes()))
    except RuntimeError as error:  # Yosys cannot run
        sys.exit(str(error))
    _check(expected)
    Path(FILES).write_text(json.dumps(files), encoding="utf-8")


def _check(expected: str) -> None:
    if digest() != expected:
        sys.exit("a source file of Spurtle changed while a design was generated: run it again")


if __name__ == "__main__":
    main()
