"""What lines in engines' logs mean: each pattern is from a log of vLLM 0.32, NIXL, UCX, NCCL or NVIDIA's driver."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Lines that tell of one trouble."""

    id: str
    """Its entry in the runbook."""
    pattern: re.Pattern[str]
    hint: str
    """In a few words, what happened and what to do; ``{0}`` is the pattern's first group."""
    symptom: str
    cause: str
    fix: str
    about_memory: bool = False
    """Whether it says that there was not enough memory."""


def _signature(
    id_: str, pattern: str, hint: str, symptom: str, cause: str, fix: str, *, about_memory: bool = False
) -> Signature:
    return Signature(id_, re.compile(pattern, re.IGNORECASE), hint, symptom, cause, fix, about_memory)


SIGNATURES: tuple[Signature, ...] = (
    _signature(
        "port-taken",
        r"address already in use|\[Errno 98\]",
        "another process took its port: start again",
        "A port is in use already.",
        "Another deployment on this machine, or a process that was left over.",
        "`ss -ltnp` shows who; choose other `ports` in the profile, or end the other process.",
    ),
    _signature(
        "no-room-for-kv-cache",
        r"No available memory for the cache blocks|KV cache is needed|larger than the available KV cache memory",
        "the KV cache is too small: raise roles.*.kv_cache_memory or gpu_memory_utilization, or lower max_model_len",
        "An engine does not start: too little memory is left for its KV cache.",
        "Weights, draft and activations take what the engine may use, or one request of `max_model_len` needs more "
        "than "
        "there is.",
        "Raise `kv_cache_memory` or `gpu_memory_utilization`, lower `model.max_model_len`, or quantize; `launcher "
        "size` "
        "shows what fits.",
        about_memory=True,
    ),
    _signature(
        "memory-profiling-failed",
        r"Error in memory profiling",
        "another process gave GPU memory back while it measured what is free: start again",
        "An engine does not start: free memory changed while it measured.",
        "Another process on the same device ended or gave memory back in that moment.",
        "Start again; engines of one deployment on one device wait for each other by themselves.",
        about_memory=True,
    ),
    _signature(
        "device-taken",
        r"Free memory on device .* is less than",
        "others have too much of its device's memory: end them, or lower roles.*.gpu_memory_utilization",
        "An engine does not start: its device's memory is in use.",
        "Another process, often left over from an earlier run, holds it.",
        "`nvidia-smi` shows who; end it, choose other `devices`, or lower `gpu_memory_utilization`.",
        about_memory=True,
    ),
    _signature(
        "out-of-memory",
        r"(?:CUDA|HIP|GPU) out of memory|OutOfMemoryError|\bout of memory\b|Cannot allocate memory|std::bad_alloc",
        "out of memory: lower roles.*.kv_cache_memory, max_num_seqs or max_num_batched_tokens",
        "An engine runs out of memory.",
        "The batch or the draft is too large, another process uses the device, or the KV cache was sized without room "
        "for "
        "activations.",
        "Smaller batches (`max_num_batched_tokens`, `max_num_seqs`), a lower `gpu_memory_utilization`, quantization, "
        "no "
        "draft; `launcher size PROFILE` shows what fits.",
        about_memory=True,
    ),
    _signature(
        "torchvision-mismatch",
        r"operator torchvision::nms does not exist",
        "torchvision does not match torch: pip uninstall -y torchvision torchaudio torchcodec",
        "An engine does not start: torchvision does not match torch.",
        "Packages were installed from different indexes.",
        "`pip uninstall -y torchvision torchaudio torchcodec`: vLLM needs none of them for text.",
    ),
    _signature(
        "engine-not-installed",
        r"No module named '?(?:vllm|nixl)",
        "the engine is not installed in its Python: scripts/install",
        "An engine does not start: vLLM or NIXL is not installed.",
        "The launcher's Python has no engine in it.",
        "`pip install '.[gpu]'` or `'.[cpu]'`, or `engine_command` for another Python.",
    ),
    _signature(
        "wrong-engine-argument",
        r"error: (unrecognized arguments: .*|argument .*)",
        "vLLM says {0}: correct roles.*.engine_args",
        "An engine does not start: it does not know an option, or refuses its value.",
        "`engine_args` has a name or value of another version of vLLM.",
        "Correct `engine_args`; `launcher check PROFILE` asks vLLM's own parser before anything starts.",
    ),
    _signature(
        "model-not-fetched",
        r"is not a valid model identifier|couldn't connect to|LocalEntryNotFoundError|offline mode is enabled",
        "the model could not be fetched: check model.id and the network, or use model.path",
        "An engine does not start: the model could not be fetched.",
        "A wrong `model.id`, no network, no token for a gated model, or offline mode without a cached copy.",
        "Check `model.id` and the token (`secrets`), fetch it beforehand, or use `model.path`.",
    ),
    _signature(
        "kv-layout-mismatch",
        r"compatibility hash mismatch|block size mismatch|kv[_ ]cache[_ ]layout.{0,40}mismatch",
        "prefill and decode do not fit: launcher check names what differs",
        "Prefill and decode do not fit: the KV connector refuses the other side.",
        "Another version, model, block size, KV dtype, attention backend or layout on one side.",
        "Give both roles the same; `launcher check PROFILE` names what differs.",
    ),
    _signature(
        "kv-transfer-broken",
        r"NIXL_ERR_|nixlBackendError|NIXL (?:transfer|handshake).{0,40}fail|UCX +ERROR",
        "the KV connector cannot move KV: network, UCX settings, or a peer that is gone",
        "The KV connector cannot move KV.",
        "The network between prefill and decode, UCX's choice of transport or devices, a side channel that nobody "
        "reaches, "
        "or a peer that is gone.",
        "Reach prefill's side channel from decode (`launcher plan` shows address and port); set UCX_TLS and "
        "UCX_NET_DEVICES; "
        "restart the side that is gone.",
    ),
    _signature(
        "nccl-failed",
        r"NCCL error|ncclSystemError|ncclInternalError|ncclUnhandledCudaError|NCCL WARN",
        "the GPUs of an instance cannot talk to each other: NCCL_DEBUG=INFO tells more",
        "The GPUs of one instance cannot talk to each other.",
        "NCCL chose a network interface or a transport that does not work here, or /dev/shm is too small.",
        "NCCL_DEBUG=INFO in `env` tells more; set NCCL_SOCKET_IFNAME; give containers a larger /dev/shm.",
    ),
    _signature(
        "device-failed",
        r"CUDA error: (?!out of memory)|\bXid\b.{0,20}\d+|uncorrectable ECC error|GPU has fallen off the bus",
        "a GPU has failed: dmesg and nvidia-smi -q tell more",
        "A GPU has failed.",
        "A hardware or driver error (Xid), or an illegal access of a kernel.",
        "`dmesg | grep -i xid`, `nvidia-smi -q`; take the device out of `devices`; reboot or replace it.",
    ),
    _signature(
        "disk-full",
        r"No space left on device|\[Errno 28\]",
        "a disk is full: make room, or set HF_HOME and DUET_CACHE to a larger one",
        "A disk is full.",
        "Models, logs or caches have filled it.",
        "Make room; `HF_HOME` and `DUET_CACHE` may be on a larger disk.",
    ),
)
"""In the order in which they are looked for: what others follow from comes first."""


def likely_cause(lines: Sequence[str]) -> str | None:
    """What these last lines of a dead engine are known to mean, if anything."""
    text = "\n".join(lines)
    found = ((each.pattern.search(text), each.hint) for each in SIGNATURES)
    return next((hint.format(*match.groups()) for match, hint in found if match), None)


def wanted_memory(lines: Sequence[str]) -> bool:
    """Whether these last lines of a dead engine say that there was not enough memory."""
    text = "\n".join(lines)
    return any(each.about_memory and each.pattern.search(text) for each in SIGNATURES)
