"""Files that are written whole or not at all."""

import json
from pathlib import Path
from typing import Any

from .errors import UserError

__all__ = ["check_writable", "write_json", "write_whole"]


def check_writable(name: str | Path) -> None:
    """Raises UserError if no file of that name can be written; leaves nothing behind."""
    path = Path(name)
    if path.is_dir():
        raise UserError(f"cannot write {name}: it is a directory")
    unfinished = _unfinished(path)
    try:
        unfinished.touch()
        unfinished.unlink()
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror}") from error


def write_whole(name: str | Path, data: bytes) -> None:
    """A file that takes its name when it is complete. Raises UserError if it cannot be written."""
    path = Path(name)
    unfinished = _unfinished(path)
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UserError(f"cannot write {name}: {error.strerror}") from error


def write_json(path: Path, content: Any) -> None:
    """A JSON file, written whole; its folder is made if it is missing. Raises UserError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path.parent}: {error.strerror}") from error
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode())


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.unfinished")
