"""Makes a two-layer Llama that has learned the shop's conversations: small, and with something to lose.

A program of its own, so that no test process imports torch: ``python -m tests.quantize.trained_model FOLDER``.
"""

import sys
from pathlib import Path

from tests.quantize.traffic_of_a_shop import conversations
from tests.real.tiny_model import tokenizer_of

_STEPS, _BATCH, _LENGTH = 70, 16, 96


def main(folder: Path) -> None:
    """Write model and tokenizer; about 20 s on two cores."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    text = [message["content"] for messages in conversations(400, seed=1) for message in messages]
    tokenizer = tokenizer_of(text, 512)
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
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    rendered = [
        tokenizer.apply_chat_template(messages, tokenize=False) for messages in conversations(_STEPS * _BATCH, seed=2)
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(_STEPS):  # the loss goes from 6.2 to 0.6
        batch = tokenizer(
            rendered[step * _BATCH : (step + 1) * _BATCH],
            return_tensors="pt",
            truncation=True,
            max_length=_LENGTH,
            padding="max_length",
        )
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
        loss = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
