"""Turns a GGUF file into a Hugging Face folder and checks that the result still thinks.

A program of its own, so that the launcher never imports torch: ``python -m launcher.bundled.convert GGUF FOLDER``.
"""

import sys
from pathlib import Path

QUESTION, EXPECTED = "What is the capital of France?", "Paris"


def main(gguf: Path, folder: Path) -> None:
    """Write model and tokenizer, then load them again and ask a question; exits with a message if it fails."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**prompt, max_new_tokens=12, do_sample=False)
    answer = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    if EXPECTED not in answer:
        sys.exit(f"the converted model answers {QUESTION!r} with {answer!r}: the conversion went wrong")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
