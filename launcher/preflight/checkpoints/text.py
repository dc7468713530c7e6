"""Is there what makes tokens of text, and prompts of messages, and does it fit the model?"""

from collections.abc import Iterator

from launcher import tokenizer_file
from launcher.preflight.checkpoints.engine_models import Kind, knows_type, look_up
from launcher.preflight.checkpoints.loaded import Loaded, target, tokenizer
from launcher.preflight.finding import Case, Fault, Layer, Rule, Severity

_TEMPLATES = frozenset({"chat_template.jinja", "chat_template.json", "tekken.json"})
"""Files that tell how messages become a prompt."""


def _there(case: Case) -> Iterator[Fault]:
    """A folder with no file that a tokenizer can be made of."""
    source = _source(case)
    if source is None or not source.folder.config or _skips(case) or tokenizer_file.has_tokenizer(source.folder.path):
        return
    yield Fault(
        source.key,
        f"{source.name} has no tokenizer (tokenizer.json, tokenizer.model, vocab.json...)",
        "copy the files of its base model into it, or set model.tokenizer",
        "the engine would end when it starts",
    )


def _template(case: Case) -> Iterator[Fault]:
    """Nothing that makes a prompt of messages."""
    source = _source(case)
    if source is None or case.profile.model.chat_template is not None or not source.folder.names or _skips(case):
        return
    folder = source.folder
    if _TEMPLATES & folder.names or folder.tokenizer.get("chat_template") or not folder.config:
        return
    yield Fault(
        "model.chat_template",
        f"neither {source.name} nor the profile has a chat template",
        "set model.chat_template to a file, or serve the instruction-tuned model",
        "requests to /v1/chat/completions are answered with 400; /v1/completions works",
        severity=Severity.WARNING,
    )


def _fits(case: Case) -> Iterator[Fault]:
    """Another tokenizer with tokens that the model has no embedding for."""
    other, model = tokenizer(case), target(case)
    if other is None or model is None:
        return
    size = model.folder.text.get("vocab_size")
    tokens = case.reader.tokenizer(other.folder.path)
    if tokens is None or not isinstance(size, int) or tokens.highest < size:
        return
    beyond = [text for text, number in tokens.tokens.items() if number >= size]
    yield Fault(
        "model.tokenizer",
        f"the tokenizer {other.name} has tokens up to {tokens.highest} (e.g. {beyond[0]!r}), the model's vocabulary "
        f"has {size}",
        "use the model's own tokenizer, or one of the same family and size",
        "a prompt with such a token would kill the engine or be answered with nonsense",
        {"model.tokenizer": str(tokens.highest + 1), "config.json: vocab_size": str(size)},
    )


def _own_code(case: Case) -> Iterator[Fault]:
    """A configuration or tokenizer that only the folder's own Python code can read."""
    model = target(case)
    if model is None or case.profile.model.trust_remote_code:
        return
    config, told = model.folder.config, model.folder.tokenizer
    names = config.get("architectures")
    is_known = isinstance(names, list) and any(look_up(str(name)).kind is not Kind.UNKNOWN for name in names)
    if is_known and _maps(config.get("auto_map"), "AutoConfig") and not knows_type(config.get("model_type")):
        yield _needs_code(model, "configuration", f"model_type {config.get('model_type')!r}")
    has_file = {"tokenizer.json", "tekken.json", "vocab.json", "tokenizer.model"} & model.folder.names
    if _maps(told.get("auto_map"), "AutoTokenizer") and not has_file and case.profile.model.tokenizer is None:
        yield _needs_code(model, "tokenizer", f"class {told.get('tokenizer_class', 'of its own')}")


def _needs_code(model: Loaded, part: str, what: str) -> Fault:
    return Fault(
        "model.trust_remote_code",
        f"{model.name} has a {part} ({what}) that only the Python code in its folder can read",
        "read that code, and set model.trust_remote_code: true",
        "without it the engine ends when it starts",
    )


def _maps(auto_map: object, name: str) -> bool:
    return isinstance(auto_map, dict) and name in auto_map


def _source(case: Case) -> Loaded | None:
    """Whose tokenizer is used."""
    return target(case) if case.profile.model.tokenizer is None else None


def _skips(case: Case) -> bool:
    places = (case.profile.engine_args, *(settings.engine_args for _, settings in case.profile.roles.items()))
    return any(option.replace("_", "-") == "skip-tokenizer-init" for each in places for option in each)


_TRANSFORMERS = "Transformers: files that a tokenizer is loaded from"
RULES = (
    Rule("tokenizer/there", Layer.STATIC, _TRANSFORMERS, _there, needs_model=True),
    Rule("tokenizer/chat-template", Layer.STATIC, "vLLM 0.32: chat requests need one", _template, needs_model=True),
    Rule("tokenizer/fits-model", Layer.STATIC, "the rows of the model's embedding", _fits, needs_model=True),
    Rule("model/own-code", Layer.STATIC, "Transformers: auto_map and trust_remote_code", _own_code, needs_model=True),
)
