"""Reads the folders of models once, however many rules ask for them."""

from pathlib import Path

from launcher import model_folder, tokenizer_file
from launcher.model_folder import ModelFolder
from launcher.tokenizer_file import Tokenizer


class Reader:
    """What was read of each folder, for as long as one preflight lasts."""

    def __init__(self) -> None:
        self._folders: dict[Path, ModelFolder] = {}
        self._tokenizers: dict[Path, Tokenizer | None] = {}

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
