"""Prefill and decode are compared before the start, when they run, and when one of them was started again."""

import json
import os
import signal
from pathlib import Path
from urllib.error import HTTPError

from launcher.local.declarations import GONE, Declarations
from launcher.local.run_directory import RunDirectory
from launcher.weights import digest
from proxy.agreement import Fact
from proxy.config import dump, load
from tests.launcher.builders import model_folder, plan
from tests.launcher.local.conftest import Launch
from tests.launcher.local.deployments import wait_until
from tests.launcher.local.test_start import ask


def test_a_profile_whose_roles_do_not_agree_is_refused_with_all_reasons(launch: Launch):
    sizes = ("roles.prefill.block_size=64", "roles.decode.block_size=32")
    running = launch("--set", sizes[0], "--set", sizes[1], "--set", "roles.prefill.env.VLLM_KV_CACHE_LAYOUT=HND")
    assert running.result() == 4
    assert "block size differs: prefill-0 has 64, decode-0 has 32" in running.output
    assert "variable VLLM_KV_CACHE_LAYOUT differs: prefill-0 has HND, decode-0 has (not set)" in running.output
    assert not running.state()


def test_engines_that_turn_out_to_differ_serve_without_each_other(launch: Launch, command, proxy_port: int):
    launch("--set", "roles.prefill.block_size=96").wait_ready()
    headers, _ = ask(proxy_port)
    assert (headers["x-duet-path"], headers["x-duet-bypass"]) == ("aggregated", "no_pair")
    shown = command("status", "--pairs")
    assert shown.returncode == 1
    assert "refused" in shown.stdout
    assert "block size differs: prefill-0 has 96, decode-0 has 16" in shown.stdout


def path(port: int) -> str | None:
    """What a request takes; ``None`` while the instance that came back is not trusted yet."""
    try:
        return ask(port)[0]["x-duet-path"]
    except HTTPError:
        return None


def test_weights_that_were_replaced_under_a_deployment_are_told_when_an_engine_starts_again(
    launch: Launch, command, folder: Path, proxy_port: int
):
    running = launch()
    running.wait_ready()
    old = digest(folder / "model")
    (folder / "model" / "model.safetensors").write_bytes(b"other weights")
    new = digest(folder / "model")
    assert ask(proxy_port)[0]["x-duet-path"] == "pd"

    def restart(name: str) -> None:
        restarts = running.instance(name)["restarts"]
        os.kill(running.instance(name)["pid"], signal.SIGKILL)
        running.wait(lambda: running.instance(name)["restarts"] == restarts + 1)
        running.wait(lambda: running.instance(name)["state"] == "ready")

    def pair() -> dict:
        return json.loads(command("status", "--pairs", "--output", "json").stdout)["pairs"][0]

    restart("prefill-0")
    wait_until(lambda: pair()["standing"] == "refused")
    assert pair()["reason"] == f"digest of the weights differs: prefill-0 has {new}, decode-0 has {old}"
    assert ask(proxy_port)[0]["x-duet-bypass"] == "no_pair"
    assert f"digest of the weights of prefill-0 is another than before ({old}, now {new})" in running.output

    restart("decode-0")
    wait_until(lambda: pair()["standing"] != "refused")
    wait_until(lambda: path(proxy_port) == "pd")


def declarations(
    folder: Path, *overrides: str, environ: dict[str, str]
) -> tuple[RunDirectory, Declarations, list[str]]:
    """Of a planned pair whose proxy's file is written."""
    settled = plan("demo", "model.bundled=null", *overrides)
    directory = RunDirectory(folder)
    directory.create()
    directory.proxy_config.write_text(settled.files[0].content)
    warnings: list[str] = []
    return directory, Declarations(settled.engines, directory, environ, warnings.append), warnings


def weights(directory: RunDirectory) -> list[str | None]:
    return [each.fingerprint.get(Fact.WEIGHTS) for each in load(directory.proxy_config).topology.instances]


async def test_what_engines_load_from_a_hub_is_declared_when_it_is_there(tmp_path: Path):
    environ = {"HF_HUB_CACHE": str(tmp_path)}
    directory, declared, warnings = declarations(tmp_path / "run", "model.id=org/name", environ=environ)
    await declared.complete()
    assert weights(directory) == [None, None]

    kept = tmp_path / "models--org--name"
    snapshot = model_folder(kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    await declared.complete()
    assert weights(directory) == [digest(snapshot)] * 2
    assert warnings == []


async def test_weights_that_cannot_be_read_any_more_are_not_those_of_before(tmp_path: Path):
    model = model_folder(tmp_path / "model")
    directory, declared, warnings = declarations(tmp_path / "run", f'model.path="{model}"', environ={})
    await declared.complete()
    before = digest(model)
    (model / "pytorch_model.bin").unlink()
    await declared.renew("decode-0")
    assert weights(directory) == [before, GONE]
    assert len(warnings) == 1


async def test_an_engine_that_the_proxy_does_not_know_is_left_out(tmp_path: Path):
    model = model_folder(tmp_path / "model")
    directory, declared, warnings = declarations(tmp_path / "run", f'model.path="{model}"', environ={})
    config = load(directory.proxy_config)
    emptied = dump(type(config)(topology=type(config.topology)(())))
    directory.proxy_config.write_text(emptied)
    await declared.renew("decode-0")
    assert (directory.proxy_config.read_text(), warnings) == (emptied, [])


async def test_a_file_that_cannot_be_read_is_reported_and_no_reason_to_stop(tmp_path: Path):
    model = model_folder(tmp_path / "model")
    directory, declared, warnings = declarations(tmp_path / "run", f'model.path="{model}"', environ={})
    directory.proxy_config.write_text("{")
    await declared.renew("decode-0")
    assert "the proxy does not learn whether decode-0 still loads the same weights" in warnings[0]
