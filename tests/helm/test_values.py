"""Each value does something, and no other is taken."""

import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.helm import charts, situations, walk
from tests.helm.charts import CHART, Helm, Refused

_LEAVES = list(walk.leaves(walk.defaults()))
_OF_KUBERNETES = {
    *("labels", "annotations", "podLabels", "podAnnotations"),
    *("resources", "strategy", "behavior", "volume", "podSecurityContext", "containerSecurityContext"),
    *("nodeSelector", "affinity", "extraContainerSpec", "extraPodSpec", "endpoint", "timeouts"),
}
"""Objects whose keys Kubernetes and the operators know, not this chart."""
_CHOICES = {
    "pullPolicy": "Always",
    "digest": f"sha256:{'4' * 64}",
    "maxUnavailable": 2,
    ("modelCache", "kind"): "existingClaim",
    ("engine", "autoscaling", "kind"): "none",
    ("proxy", "service", "type"): "LoadBalancer",
    ("model", "inImage"): False,
    ("profile",): "batch-cost",
    ("plan",): charts.plan("demo"),
    ("prefill",): {"podLabels": {"sentinel-9000": "x"}},
    ("decode",): {"podLabels": {"sentinel-9001": "x"}},
    ("aggregated",): {"podLabels": {"sentinel-9002": "x"}},
}
"""Values whose texts are not free."""


def _bases() -> list[dict[str, Any]]:
    """Situations in one of which each value matters."""
    claim = {"modelCache": {"kind": "existingClaim", "existingClaim": "models"}, "download": {"enabled": False}}
    in_image = {"model": {"volume": None, "inImage": True}}
    bases = [
        situations.everything("api-throughput"),
        situations.scaled("api-throughput", "hpa"),
        situations.scaled("api-throughput", "keda"),
        situations.guarded(),
        situations.everything("interactive"),
        situations.scaled("interactive", "hpa"),
        situations.scaled("interactive", "keda"),
        walk.merged(situations.everything("demo"), claim),
        walk.merged(situations.guarded(), in_image),
    ]
    # They are long: one situation has them.
    short = {"monitoring": {"rules": {"enabled": False}, "dashboards": {"enabled": False}}}
    long = {"monitoring": {"rules": {"enabled": True}, "dashboards": {"enabled": True}}}
    return [*(walk.merged(base, short) for base in bases), situations.plain("demo") | long]


def _sentinel(path: walk.Path, default: Any, number: int) -> Any:
    for key in (path, path[-1]):
        if key in _CHOICES:
            return _CHOICES[key]
    allowed = walk.of(path)
    types = allowed.get("type", "string")
    text = f"sentinel-{number}"
    if isinstance(default, bool):
        return not default
    if "array" in types:
        match allowed["items"]["type"]:
            case "string":
                return [text]
            case "integer":
                return [4000 + number]
        return [{"kind": "ConfigMap"}] if path == ("extraObjects",) else [{"name": text}]
    if "integer" in types:
        return 4000 + number
    if "object" in types:
        return {text: "x"}
    return f"/{text}" if "pattern" in allowed else text


_HIDE_OTHERS = {
    ("fullnameOverride",),
    ("engine", "image", "repository"),
    ("engine", "affinity"),
    ("engine", "autoscaling", "metric"),
    ("engine", "autoscaling", "target"),
    ("engine", "autoscaling", "keda", "query"),
}


def test_each_value_does_something(helm: Helm):
    left = {path: _sentinel(path, default, number) for number, (path, default) in enumerate(_LEAVES)}
    for base in _bases():
        # Those of which the text is found again are seen in one go, the others one by one.
        words = {path: _word(value) for path, value in left.items() if path not in _HIDE_OTHERS}
        text = helm.text(walk.merged(base, *(walk.at(path, left[path]) for path, word in words.items() if word)))
        found = set(re.findall(r"sentinel-\d+|\b4\d{3}\b", text))
        left = {path: value for path, value in left.items() if words.get(path) not in found}
        before = helm.text(base)
        left = {
            path: value
            for path, value in left.items()
            if words.get(path) or not _changes(helm, base, before, path, value)
        }
    assert not left, f"without effect: {['.'.join(path) for path in left]}"


def _word(value: Any) -> str | None:
    """The text of a sentinel that is nowhere else."""
    found = re.search(r"sentinel-\d+|\b4\d{3}\b", str(value))
    return found and found[0]


def _changes(helm: Helm, base: dict[str, Any], before: str, path: walk.Path, value: Any) -> bool:
    try:
        return helm.text(walk.merged(base, walk.at(path, value))) != before
    except Refused as refused:
        # That a value is missing which another one asks for is an effect, too.
        return "execution error" in str(refused)


def test_each_value_has_a_comment():
    text = (CHART / "values.yaml").read_text()
    lines, document = text.splitlines(), yaml.compose(text)

    def commented(path: walk.Path) -> bool:
        return lines[walk.line_of(document, path) - 1].strip().startswith("# -- ")

    # Alternatives of one value may share one.
    assert not [".".join(path) for path, _ in _LEAVES if not commented(path) and not commented(path[:-1])]


@pytest.mark.parametrize("path", list(walk.levels(walk.defaults())), ids=".".join)
def test_an_unknown_value_is_refused_at_each_level(path: walk.Path):
    wrong = list(Draft7Validator(walk.schema()).iter_errors(walk.at((*path, "typo"), 1)))
    assert bool(wrong) == (not _OF_KUBERNETES & set(path)), [error.message for error in wrong]


@pytest.mark.parametrize("path", list(walk.levels(charts.plan("api-throughput"))), ids=".".join)
def test_an_unknown_key_of_a_plan_is_refused_at_each_level(path: walk.Path):
    plan = walk.merged(charts.plan("api-throughput"), walk.at((*path, "typo"), 1))
    assert list(Draft7Validator(walk.schema()).iter_errors({"plan": plan})), path


@pytest.mark.parametrize("profile", charts.PROFILES)
def test_shipped_plans_are_plans(profile: str):
    Draft7Validator(walk.schema()).validate({"plan": charts.plan(profile)})


def test_the_schema_is_one():
    Draft7Validator.check_schema(walk.schema())
    assert list(walk.schema()["properties"]) != []


@pytest.mark.parametrize(
    "values",
    [
        {"proffile": "demo"},
        {"engine": {"shmSiize": "1Gi"}},
        {"decode": {"image": {"tga": "v1"}}},
        {"proxy": {"replicas": 0}},
        {"modelCache": {"kind": "nfs"}},
        {"plan": charts.plan("demo") | {"version": 2}},
    ],
)
def test_helm_refuses_what_the_schema_does(each_helm: Helm, values: dict[str, Any]):
    with pytest.raises(Refused, match="schema"):
        each_helm.template(situations.plain("demo") | values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, r"nothing to serve: give --set profile=NAME \(.*api-throughput, .*\), or -f values.yaml"),
        ({"profile": "fast"}, r'profile: there is no "fast" in this chart; there are .*demo'),
        (situations.guarded() | {"existingSecret": ""}, "existingSecret: the (engines need|proxy needs) ENGINE_KEY"),
        (situations.guarded() | {"model": {}}, "model.volume: the engines look for the model in .* /models/mine"),
        (situations.guarded() | {"sharedFolder": {}}, "sharedFolder.existingClaim: the connector .*ReadWriteMany"),
        (situations.guarded() | {"proxy": {}}, "proxy.tls.existingSecret: the proxy speaks TLS"),
        (situations.guarded() | {"modelCache": {"kind": "hostPath"}}, "modelCache.hostPath: which folder"),
        (situations.plain("demo") | {"modelCache": {"kind": "existingClaim"}}, "modelCache.existingClaim: which"),
        (situations.plain("demo") | {"download": {"enabled": True}}, "download.enabled: .* choose pvc"),
        (situations.guarded() | {"download": {"enabled": True}}, "download.enabled: the profile names a folder"),
        (situations.everything("demo") | {"download": {"enabled": True, "hook": True}}, "download.hook: .* no claim"),
        (situations.plain("demo") | {"engine": {"autoscaling": {"kind": "hpa"}}}, "decode.autoscaling: .* Give min"),
        (
            situations.plain("demo") | {"engine": {"autoscaling": {"kind": "keda", "min": 1, "max": 2}}},
            "autoscaling.keda.serverAddress: the URL of Prometheus",
        ),
        (situations.plain("demo") | {"proxy": {"ingress": {"enabled": True}}}, "proxy.ingress.host: by which name"),
        (situations.plain("demo") | {"proxy": {"httpRoute": {"enabled": True}}}, "proxy.httpRoute.parentRefs: which"),
    ],
)
def test_what_is_missing_is_said(helm: Helm, values: dict[str, Any], said: str):
    with pytest.raises(Refused, match=said):
        helm.template(values)
