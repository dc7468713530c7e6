"""Reads the folders of models once, however many rules ask for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from launcher import model_folder, tokenizer_file
from launcher.model_folder import ModelFolder
from launcher.tokenizer_file import Tokenizer

T = TypeVar("T")


class Reader:
    """What was read of each folder, for as long as one preflight lasts."""

    def __init__(self) -> None:
        self._folders: dict[Path, ModelFolder] = {}
        self._tokenizers: dict[Path, Tokenizer | None] = {}
        self._derived: dict[tuple[Callable[[ModelFolder], Any], Path], Any] = {}

    def folder(self, path: Path) -> ModelFolder:
        """What the folder says; raises nothing."""
        if path not in self._folders:
            self._folders[path] = model_folder.read(path)
        return self._folders[path]

    def tokenizer(self, path: Path) -> Tokenizer | None:
        """The tokens of the folder's tokenizer; ``None`` where they cannot be read."""
        if path not in self._tokenizers:
            self._tokenizers[path] = tokenizer_file.read(path)
        return self._tokenizers[path]

    def once(self, derive: Callable[[ModelFolder], T], folder: ModelFolder) -> T:
        """What ``derive`` makes of the folder, made once."""
        key = derive, folder.path
        if key not in self._derived:
            self._derived[key] = derive(folder)
        found: T = self._derived[key]
        return found
