"""What the report's terms mean, for somebody who has never quantized."""

from launcher.quantize.gate.shape import Verdict

VERDICTS = {
    Verdict.PASS: "Passed",
    Verdict.FAIL: "Failed",
    Verdict.INCONCLUSIVE: "Not decided",
}

SCHEMES = {
    "int8": "INT8 (W8A8): weights and activations are 8-bit integers in place of 16-bit floating point.",
    "int4": "INT4 (W4A16): weights are 4-bit integers with a scale for each group of them; arithmetic is 16-bit.",
    "fp8": "FP8: weights and activations are 8-bit floating point; scales of activations are found while serving.",
}

CHECKS = {
    "token KL": "How far probabilities of the next token are from the original's. Lower is better, 0 is equal.",
    "top-1 agreement": "How often both models would say the same token next. Higher is better.",
    "next-token accuracy": "Points lost in guessing the token that really comes next in your records. Lower is better.",
    "task accuracy": "Points lost in answering the questions of your labelled task. Lower is better.",
}

ALGORITHMS = {
    "round to nearest": "each weight is rounded, without looking at data",
    "gptq": "weights are rounded one by one, and the rest corrected for the error by what your records show",
    "smoothquant": "outliers of activations are moved into the weights first, where rounding harms less",
    "awq": "weights that your records use most are scaled up before rounding, so that they lose less",
}

GLOSSARY = {
    "Quantization": "A model's numbers get fewer bits: it is smaller, often faster, and a little less exact.",
    "Calibration": "Your prompts run through the model, so that rounding harms least where you use it most.",
    "Held-out records": "Records set aside before calibration: the judgement is about text never calibrated on.",
    "KL divergence": "A measure of how different two lists of probabilities are, in nats; 0 means equal.",
    "Top-1 agreement": "The share of places at which both models would say the same token.",
    "W8A8, W4A16": "Bits of the weights (W) and of the activations (A), which are the numbers between layers.",
    "Unit": "Layers that the engine computes as one, and that share one precision (query, key and value).",
    "Interval": "The range that the true value is in with 95 % confidence; more records make it narrower.",
    "Guard": "A check of the files themselves, before any quality is measured.",
    "Perplexity, NLL": "How surprised a model is by the real text. It can improve while answers change: never judged.",
    "TTFT": "Time to the first token of an answer.",
}
"""In the order of the page."""


def algorithm(name: str) -> str:
    """What it does: of each part of its name that is known."""
    known = [text for part, text in ALGORITHMS.items() if part in name.lower()]
    return "; ".join(known)
