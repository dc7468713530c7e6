"""Which experts of a mixture do the records never reach?"""

from collections.abc import Sequence
from typing import Any

_ENOUGH = 64
"""Records that are looked at."""


def never_chosen(model: Any, records: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """By the number of the layer: experts that no token was sent to; empty for a model without experts."""
    import torch

    config = model.config.get_text_config()
    chosen = getattr(config, "num_experts_per_tok", None)
    if not chosen or not records:
        return {}
    seen: list[Any] = []
    for record in records[:_ENOUGH]:
        with torch.no_grad():
            logits = model(torch.tensor([record]), output_router_logits=True).router_logits
        for layer, of_layer in enumerate(logits or ()):
            counted = torch.bincount(of_layer.topk(chosen, dim=-1).indices.flatten(), minlength=of_layer.shape[-1])
            if layer == len(seen):
                seen.append(counted)
            else:
                seen[layer] = seen[layer] + counted
    return {str(layer): torch.nonzero(each == 0).flatten().tolist() for layer, each in enumerate(seen) if 0 in each}
