"""Who owns how many there are, and how many may be away."""

from tests.helm import situations
from tests.helm.charts import engines, named, of_kind
from tests.helm.conftest import Rendered


def test_a_scaler_alone_owns_the_number_of_its_instances(rendered: Rendered):
    for situation in ("hpa", "hpa, aggregated", "keda", "guarded and scaled"):
        manifests = rendered[situation]
        scalers = of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject")
        targets = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers}
        owned = {
            each["metadata"]["name"] for each in of_kind(manifests, "Deployment") if "replicas" not in each["spec"]
        }
        assert targets == owned == {f"pd-{role}" for role in engines(manifests)}
    for situation in situations.all_of_them().keys() - {"hpa", "hpa, aggregated", "keda", "guarded and scaled"}:
        manifests = rendered[situation]
        assert not of_kind(manifests, "HorizontalPodAutoscaler", "ScaledObject")
        assert all("replicas" in each["spec"] for each in of_kind(manifests, "Deployment", "LeaderWorkerSet"))


def test_a_plans_bounds_hold_where_none_are_given(rendered: Rendered):
    spec = named(rendered["guarded and scaled"], "HorizontalPodAutoscaler", "pd-prefill")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["metrics"][0]["pods"]["metric"]["name"] == "vllm_num_requests_waiting"


def test_keda_asks_for_what_the_proxy_tells_of_this_deployment_and_role(rendered: Rendered):
    [trigger] = named(rendered["keda"], "ScaledObject", "pd-decode")["spec"]["triggers"]
    assert trigger["metadata"]["query"] == (
        'sum(max by (engine, rank) (duet_engine_kv_cache_usage_ratio{job="duet-pd",namespace="llm",role="decode"}))'
    )


def test_budgets_are_where_there_are_several(rendered: Rendered):
    def budgets(situation: str) -> set[str]:
        return {each["metadata"]["name"] for each in of_kind(rendered[situation], "PodDisruptionBudget")}

    assert budgets("plain api-throughput") == set()
    assert budgets("everything api-throughput") == {"pd-prefill", "pd-decode", "pd-proxy"}
