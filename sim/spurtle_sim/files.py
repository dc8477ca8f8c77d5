"""Files that are written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import UserError

__all__ = ["check_folder", "check_writable", "write_folder", "write_json", "write_whole"]


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


def check_folder(name: str | Path) -> None:
    """Raises UserError if no folder of that name can be made, or written into; makes nothing."""
    path = Path(name)
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    if not there.is_dir():
        raise UserError(f"cannot write into {name}: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {name}: {there} may not be written into")


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Files by their names, which they take when all are complete. Raises UserError if they cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
            for name, text in texts.items():
                Path(unfinished, name).write_text(text, encoding="utf-8")
            if taken := [name for name in texts if (folder / name).is_dir()]:
                raise UserError(f"cannot write into {folder}: {taken[0]} is a directory")
            for name in texts:
                Path(unfinished, name).replace(folder / name)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror}") from error


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
