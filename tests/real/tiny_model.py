"""Makes a two-layer Llama with random weights and a tokenizer of its own: real enough for vLLM, 2 M parameters.

A program of its own, so that no test process imports torch: ``python -m tests.real.tiny_model FOLDER``.
"""

import sys
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]


def main(folder: Path) -> None:
    """Write model and tokenizer; the same bytes every time."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    text = Path(__file__).parents[2].joinpath("LICENSE").read_text()
    tokenizer = tokenizer_of(text.splitlines(), 2048)
    tokenizer.save_pretrained(folder)

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        initializer_range=0.2,  # wide enough that the most likely token is no tie
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def tokenizer_of(lines: list[str], size: int) -> Any:
    """A tokenizer of ``size`` tokens that has learned these lines, with a chat template."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(lines, vocab_size=size, special_tokens=SPECIAL)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
