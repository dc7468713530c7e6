"""Makes the tokenizer of a model that chats, without the model."""

import json
from pathlib import Path

from tests.real.tiny_model import CHAT_TEMPLATE, SPECIAL


def write_tokenizer(folder: Path) -> Path:
    """As ``tests.real.tiny_model`` makes it, but without transformers, which would bring torch."""
    from tokenizers import ByteLevelBPETokenizer

    bpe = ByteLevelBPETokenizer()
    text = Path(__file__).parents[4].joinpath("LICENSE").read_text()
    bpe.train_from_iterator(text.splitlines(), vocab_size=1024, special_tokens=SPECIAL, show_progress=False)
    folder.mkdir(parents=True)
    bpe.save(str(folder / "tokenizer.json"))
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|end|>",
        "pad_token": "<|end|>",
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    return folder
