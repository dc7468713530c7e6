"""All engines of a plan on their devices, other precisions, and devices that somebody names."""

from dataclasses import replace

import pytest

from launcher.inventory import Checkpoint
from launcher.profile import Device
from launcher.sizing.changes import changes, options, together, transfer
from launcher.sizing.deployment import SHOWN, deployment_size, engine_settings, keys, wanted
from launcher.sizing.measured import Measured
from launcher.sizing.models import look_up
from launcher.sizing.settings import settings_of
from launcher.sizing.size import Verdict
from tests.launcher.builders import GIB, MACHINE, model_folder, plan
from tests.launcher.sizing.models import NAMES, facts, part

KNOWN = {Checkpoint(name): facts(name) for name in NAMES}
WITHOUT = replace(MACHINE, gpus=())


def sized(reference, *overrides, machine=MACHINE, **more):
    settled = plan(reference, *overrides, machine=machine)
    return deployment_size(settled, machine, look_up(wanted(settled), {}), **more)


def settings(model, *more, device=Device.CUDA, card=80):
    return settings_of(("--model", model, *more), {}, device, ("", card * GIB))


@pytest.mark.parametrize("name", ["api-throughput", "batch-cost", "interactive", "single-gpu"])
def test_the_shipped_profiles_are_known_without_network_and_fit_where_they_say(name):
    found = sized(name)
    assert not [each.unknown for each in found.instances if each.unknown]
    assert found.verdict is Verdict.FITS
    assert all("as shipped with Duet" in source for source in found.sources.values())


@pytest.mark.parametrize(("name", "card"), [("interactive", 24), ("single-gpu", 24), ("api-throughput", 80)])
def test_the_shipped_profiles_fit_the_devices_that_they_are_for(name, card):
    assert sized(name, card=card * GIB).verdict is Verdict.FITS


def test_each_device_has_the_sum_of_its_engines():
    found = sized("api-throughput", "roles.decode.devices=[0, 1]", "roles.prefill.devices=[0, 1]")
    assert [(each.name, each.instances) for each in found.devices] == [
        ("GPU 0", ("prefill-0", "decode-0")),
        ("GPU 1", ("prefill-0", "decode-0")),
    ]
    assert found.devices[0].needed == pytest.approx(2 * 80 * GIB * SHOWN * 0.92, abs=4)
    assert found.verdict is Verdict.DOES_NOT_FIT


def test_a_machine_without_such_devices_leaves_the_verdict_open():
    found = sized("api-throughput", machine=WITHOUT)
    assert (found.verdict, found.devices) == (Verdict.UNKNOWN, ())
    assert part(found.instances[0], "weights")


def test_a_device_that_the_profile_describes_needs_no_machine():
    found = sized(
        "api-throughput", *(f"roles.{role}.device_memory=80GiB" for role in ("prefill", "decode")), machine=WITHOUT
    )
    assert {each.verdict for each in found.instances} == {Verdict.FITS}


def test_on_a_cpu_the_machine_s_memory_is_shared(tmp_path):
    changes_of_demo = ("model.bundled=null", f'model.path="{model_folder(tmp_path)}"')
    found = sized("demo", *changes_of_demo, machine=replace(MACHINE, memory_available=4 * GIB))
    (memory,) = found.devices
    assert memory.needed == 2 * (2 * GIB + 256 * 2**20 + 1000)
    assert memory.verdict is found.verdict is Verdict.DOES_NOT_FIT


def test_on_a_cpu_each_process_of_an_engine_has_its_share():
    one, two = (sized("demo", f"roles.decode.tensor_parallel={width}") for width in (1, 3))
    decode = two.instances[1]
    assert two.devices[0].needed - one.devices[0].needed == 3 * decode.total - one.instances[1].total


def test_the_demo_is_known_before_its_model_is_there():
    found = sized("demo")
    assert found.instances[0].parameters == 134_515_008
    assert found.instances[0].kv.tokens == 11_648


def test_engines_that_need_the_same_have_one_key_and_others_another():
    found = keys(plan("api-throughput", "roles.decode.replicas=2", machine=WITHOUT))
    assert found["decode-0"] == found["decode-1"] != found["prefill-0"]
    other = keys(
        plan("api-throughput", "roles.decode.device_memory=80GiB", "roles.decode.device_type=H100", machine=WITHOUT)
    )
    assert other["decode-0"] != found["decode-0"]


def test_what_engines_alike_measured_before_is_used():
    settled = plan("interactive")
    before = {keys(settled)["aggregated-0"]: Measured(weights=10 * GIB, consumed=11 * GIB, activations=GIB)}
    found = sized("interactive", before=before)
    assert found.instances[0].fixed == 12 * GIB


def test_other_precisions_change_weights_and_kv_each_for_itself():
    base = sized("interactive").instances[0]
    model = engine_settings(plan("interactive"))["aggregated-0"]
    found = {
        (each.weights, each.kv_cache): each.size
        for each in changes(base, model, look_up([*wanted(plan("interactive"))], {}))
    }
    assert [*dict.fromkeys(weights for weights, _ in found)] == ["16 bit", "INT8", "INT4"]
    assert found["INT8", "as computed"].kv.tokens == base.kv.tokens
    assert part(found["16 bit", "fp8"], "weights") > 1.7 * part(base, "weights")
    assert found["INT4", "fp8"].kv.bytes_per_token * 2 == base.kv.bytes_per_token


def test_what_fits_on_two_small_cards_is_found():
    found = [
        *options("x", settings("llama-3.1-70b-w4a16", "--max-model-len", "8192", card=24), KNOWN, 2, 24 * GIB, 0.0)
    ]
    assert [(each.tensor_parallel, each.instances) for each in found if each.weights.startswith("as it is")] == [
        (1, 2),
        (2, 1),
    ]
    fitting = [each for each in found if each.size.verdict is Verdict.FITS]
    assert not fitting
    assert max(each.size.kv.longest for each in found) < 8192


def test_only_widths_that_divide_the_heads_are_offered():
    found = options("x", settings("llama-3.1-8b"), KNOWN, 6, 24 * GIB, 0.2)
    assert sorted({each.tensor_parallel for each in found}) == [1, 2, 4]


def test_a_checkpoint_s_own_precision_is_offered_once():
    found = [*options("x", settings("llama-3.1-8b-w8a8"), KNOWN, 1, 24 * GIB, 0.2)]
    assert [each.weights for each in found] == ["as it is: int8 w8a8", "16 bit", "INT4"]


def test_a_model_that_is_not_known_has_no_options():
    assert not [*options("x", settings("org/other"), {}, 1, 24 * GIB, 0.2)]


def test_roles_fit_together_or_not():
    small, large = (
        tuple(options("x", settings("llama-3.1-8b", "--max-model-len", "4096"), KNOWN, 4, card * GIB, 0.2))
        for card in (6, 24)
    )
    assert together({"prefill": large, "decode": large}, 4).startswith("prefill and decode fit at once: ")
    assert together({"prefill": large, "decode": large}, 1).startswith("prefill and decode fit not at once: ")
    nothing = tuple(each for each in small if each.size.verdict is Verdict.DOES_NOT_FIT)
    assert (
        together({"prefill": large, "decode": nothing}, 4)
        == "not prefill and decode at once: decode fit in no precision"
    )
    assert together({"aggregated": large}, 4) == ""


def test_the_kv_cache_of_a_prompt_is_moved_in_whole_blocks():
    found = transfer(settings("llama-3.1-70b"), KNOWN, 2048, 10e9)
    assert (found.bytes, found.seconds) == (2048 * 327_680, 2048 * 327_680 / 10e9)
    assert transfer(settings("llama-3.1-70b"), KNOWN, 2049, None).bytes == (2048 + 16) * 327_680
    assert transfer(settings("llama-3.1-70b", "--kv-cache-dtype", "fp8"), KNOWN, 2048, None).bytes == 2048 * 163_840


def test_each_device_of_decode_reads_a_latent_or_a_head_of_its_own():
    wide = settings("deepseek-v3", "--tensor-parallel-size", "8")
    assert transfer(wide, KNOWN, 64, None).bytes == 8 * transfer(settings("deepseek-v3"), KNOWN, 64, None).bytes
    spread = settings("llama-3.1-70b", "--tensor-parallel-size", "8")
    assert transfer(spread, KNOWN, 64, None).bytes == transfer(settings("llama-3.1-70b"), KNOWN, 64, None).bytes


def test_of_windows_only_their_end_is_moved():
    assert transfer(settings("mistral-7b-v0.1"), KNOWN, 32_000, None).bytes == (4096 + 16) * 131_072


def test_nothing_is_said_of_the_transfer_of_what_is_not_known():
    assert transfer(settings("org/other"), {}, 64, None) is None
    assert transfer(settings("llama-3.1-8b", "--kv-cache-dtype", "nvfp4"), KNOWN, 64, None) is None
