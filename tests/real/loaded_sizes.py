"""Loads small models of many architectures with random weights into vLLM itself, and says what they take.

A program of its own, so that no test process imports vLLM: ``python -m tests.real.loaded_sizes FOLDER`` reads
``cases.json`` there (name -> engine arguments) and writes one JSON line for each: bytes of all weights, and the KV
cache's tokens.
"""

import gc
import json
import os
import sys
from pathlib import Path


def main(folder: Path) -> None:
    """One engine after the other, in this process."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    from vllm import LLM
    from vllm.distributed import cleanup_dist_env_and_memory
    from vllm.model_executor.model_loader import base_loader

    loaded: list[int] = []
    finish = base_loader.process_weights_after_loading

    def weigh(model: object, *others: object, **more: object) -> None:
        """Before kernels pack the weights into memory of their own."""
        loaded.append(_weights(model))
        finish(model, *others, **more)

    base_loader.process_weights_after_loading = weigh
    for name, arguments in json.loads((folder / "cases.json").read_text()).items():
        engine = LLM(
            **arguments,
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            distributed_executor_backend="vllm.v1.executor.uniproc_executor.UniProcExecutor",
            disable_log_stats=True,
        )
        cache = engine.llm_engine.vllm_config.cache_config
        told = {"name": name, "weights": sum(loaded), "tokens": cache.kv_cache_size_tokens}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        loaded.clear()
        del engine
        cleanup_dist_env_and_memory()
        gc.collect()


def _weights(model: object) -> int:
    """Bytes of all parameters, each storage once: what two layers share is loaded once."""
    found = {tensor.untyped_storage().data_ptr(): tensor for tensor in model.parameters()}
    return sum(tensor.untyped_storage().nbytes() for tensor in found.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
