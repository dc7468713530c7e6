"""The units of a plan: as reviewed, in order, and as systemd itself takes them."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.plan import Plan
from launcher.systemd import next_steps
from launcher.systemd.units import Rendering, render
from tests.launcher.builders import plan
from tests.launcher.systemd import reading
from tests.launcher.test_golden_plans import assert_is_golden

GOLDEN = Path(__file__).parents[2] / "golden" / "systemd"
FOLDER = Path("/run/duet")
ODD = ('roles.decode.env={ODD: "100% $HOME \\"it\'s\\"\\nnew"}', "model.served_name=a b$%")
SECRETS = (
    "roles.prefill.secrets={HF_TOKEN: {env: TOKEN}}",
    'roles.decode.secrets={HF_TOKEN: {file: "/etc/duet/a key"}, VLLM_API_KEY: {env: KEY}}',
)


def shared(settled: Plan) -> Plan:
    """With all of its engines on one device."""
    return replace(settled, engines=tuple(replace(each, devices=("GPU-7",)) for each in settled.engines))


def unit(rendering: Rendering, instance: str) -> str:
    return next(file.content for file in rendering.files if file.path.endswith(f"-{instance}.service"))


@pytest.mark.parametrize(
    ("name", "profile", "overrides", "user"),
    [
        ("demo", "demo", (), None),
        ("api-throughput", "api-throughput", SECRETS, "duet"),
    ],
)
def test_units_are_those_that_were_reviewed(name: str, profile: str, overrides: tuple[str, ...], user: str | None):
    rendering = render(plan(profile, *overrides, name=name), FOLDER, user=user)
    for file in rendering.files:
        if Path(file.path).suffix in (".service", ".target"):
            assert_is_golden(file.content, GOLDEN / name / Path(file.path).name)
    assert {Path(file.path).name for file in rendering.files} == {
        *rendering.services,
        rendering.target,
        "proxy.json",
        "about.json",
    }


@pytest.mark.parametrize("profile", ["demo", "api-throughput"])
def test_a_unit_runs_what_the_plan_says(profile: str):
    settled = plan(profile, *ODD)
    rendering = render(settled, FOLDER)
    for instance in (*settled.engines, settled.proxy):
        text = unit(rendering, instance.name)
        (start,) = reading.values(text, "Service", "ExecStart")
        assert reading.command(start) == [*instance.argv]
        path = reading.environment(text).pop("PATH")
        assert path.startswith(f"{Path(instance.argv[0]).parent}:")
        assert {**reading.environment(text), "PATH": ""} == {**instance.env, "PATH": ""}


def test_the_proxy_starts_after_the_engines_and_engines_at_the_same_time():
    rendering = render(plan("api-throughput"), FOLDER)
    assert reading.values(unit(rendering, "proxy"), "Unit", "After") == [
        "duet-mine-prefill-0.service duet-mine-decode-0.service"
    ]
    assert reading.values(unit(rendering, "decode-0"), "Unit", "After") == []


def test_engines_on_one_device_start_one_after_another():
    rendering = render(shared(plan("api-throughput", "roles.decode.replicas=2")), FOLDER)
    assert reading.values(unit(rendering, "prefill-0"), "Unit", "After") == []
    assert reading.values(unit(rendering, "decode-0"), "Unit", "After") == ["duet-mine-prefill-0.service"]
    assert reading.values(unit(rendering, "decode-1"), "Unit", "After") == [
        "duet-mine-prefill-0.service duet-mine-decode-0.service"
    ]
    (before,) = reading.values(unit(rendering, "decode-0"), "Service", "ExecStartPre")
    assert reading.command(before)[-2:] == ["free", "GPU-7"]


def test_a_start_has_the_budget_of_the_profile_and_systemd_some_seconds_more():
    text = unit(render(plan("demo", "startup_timeout=77"), FOLDER), "decode-0")
    (ready,) = reading.values(text, "Service", "ExecStartPost")
    assert reading.command(ready)[-3:] == ["http://127.0.0.1:8101/health", "--within=77", "--settle"]
    assert reading.values(text, "Service", "TimeoutStartSec") == ["122"]


def test_the_proxy_has_the_time_to_drain():
    text = unit(render(plan("demo", "proxy.drain=100"), FOLDER), "proxy")
    assert reading.values(text, "Service", "TimeoutStopSec") == ["104"]


def test_secrets_are_named_and_not_read():
    settled = plan("api-throughput", *SECRETS)
    rendering = render(settled, FOLDER)
    text = unit(rendering, "decode-0")
    assert reading.values(text, "Service", "LoadCredential") == ["HF_TOKEN:/etc/duet/a key"]
    assert reading.values(text, "Service", "EnvironmentFile") == ["/run/duet/secrets.env"]
    (start,) = reading.values(text, "Service", "ExecStart")
    started = reading.command(start)
    assert started[4:8] == ["run", "HF_TOKEN=credential", "VLLM_API_KEY=env:KEY", "--"]
    assert started[8:] == [*settled.engines[1].argv]
    assert rendering.secret_variables == ("KEY", "TOKEN")


def test_the_same_plan_gives_the_same_bytes():
    assert render(plan("demo"), FOLDER) == render(plan("demo"), FOLDER)


def test_next_steps_can_be_pasted():
    rendering = render(plan("api-throughput", *SECRETS, name="a b"), Path("/a b"))
    lines = [*next_steps.lines(rendering, Path("/a b"), [Path("/a b/duet-old.service")], user=None)]
    assert "systemctl --user enable --now 'duet-a\\x20b.target'    # enable: also after a boot" in lines
    assert lines[0] == "# write KEY=..., TOKEN=... into '/a b/secrets.env', for nobody else to read (chmod 600)"
    assert "'/a b/duet-a\\x20b-decode-0.service'" in lines[1]
    assert lines[-1].endswith("systemctl --user disable --now duet-old.service; rm '/a b/duet-old.service'")
    assert "sudo systemctl daemon-reload" in [*next_steps.lines(rendering, FOLDER, [], user="duet")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("user", [None, "daemon"])
def test_systemd_has_nothing_against_them(tmp_path: Path, user: str | None):
    program = shutil.which("true") or ""
    settled = shared(plan("api-throughput", *ODD, *SECRETS, "roles.decode.replicas=2", name="a b"))
    settled = replace(
        settled,
        engines=tuple(replace(each, argv=(program, *each.argv[1:])) for each in settled.engines),
        proxy=replace(settled.proxy, argv=(program, *settled.proxy.argv[1:])),
    )
    (tmp_path / "runtime").mkdir()
    rendering = render(settled, tmp_path, user=user)
    for file in rendering.files:
        if Path(file.path).suffix != ".json":
            Path(file.path).write_text(file.content)
    units = [str(tmp_path / name) for name in (*rendering.services, rendering.target)]
    checked = subprocess.run(
        ["systemd-analyze", "--system" if user else "--user", "--recursive-errors=no", "--man=no", "verify", *units],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime")},
    )
    assert (checked.returncode, checked.stderr) == (0, "")
