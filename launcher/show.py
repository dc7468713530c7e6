"""How plans, profiles, states and log lines are printed, for people and for programs."""

import json
import shlex
import time
from collections.abc import Mapping

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from launcher.about import techniques
from launcher.amounts import ago, duration, speed
from launcher.local.logs import LogLine
from launcher.local.pairs import Matrix
from launcher.local.pairs import to_json as to_json_of_pairs
from launcher.local.status import InstanceReport, StatusReport, report_json
from launcher.plan import EngineInstance, Plan, ProxyInstance, to_json
from launcher.profile import Profile
from launcher.tables import new_table, print_table


def profiles(found: Mapping[str, Profile], *, as_json: bool) -> None:
    """Name, device, techniques, model and purpose of each profile."""
    rows = [
        {
            "name": name,
            "device": profile.device.value,
            "techniques": techniques(profile),
            "model": profile.model.id or str(profile.model.path or profile.model.bundled),
            "description": profile.description,
        }
        for name, profile in found.items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = new_table("PROFILE", "DEVICE", "TECHNIQUES", "FOR")
    for row in rows:
        texts = (row["name"], row["device"], " + ".join(row["techniques"]), row["description"])
        table.add_row(*(Text(str(text)) for text in texts))
    print_table(table)


def plan(settled: Plan, *, as_json: bool) -> None:
    """Every process with its command line, environment and ports; every file."""
    if as_json:
        typer.echo(to_json(settled), nl=False)
        return
    typer.echo(f"profile {settled.profile}: model {settled.model} on {settled.device}, served as {settled.served_name}")
    instances: tuple[EngineInstance | ProxyInstance, ...] = (*settled.engines, settled.proxy)
    for instance in instances:
        typer.echo(f"\n{instance.name}: {instance.url}{_details(instance)}")
        for name, value in instance.env.items():
            typer.echo(f"    {name}={shlex.quote(value)} \\")
        typer.echo(f"    {_command(instance)}")
    for file in settled.files:
        typer.echo(f"\nfile {file.path}:")
        typer.echo("".join(f"    {line}\n" for line in file.content.splitlines()), nl=False)


def address(console: Console, settled: Plan) -> None:
    """Where clients go, with a request ready to paste."""
    body = json.dumps({"model": settled.served_name, "messages": [{"role": "user", "content": "Why is the sky blue?"}]})
    console.print(f"\nServing at {settled.proxy.url} (model {settled.served_name}). Try:\n", markup=False)
    console.print(
        f"  curl {settled.proxy.url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'\n",
        markup=False,
        soft_wrap=True,
    )
    console.print(f"See it at {settled.proxy.operators_url}/ui/ or by `launcher top`.\n", markup=False, soft_wrap=True)


def status(report: StatusReport, *, as_json: bool) -> None:
    """Each instance with role, pid, address, health and uptime."""
    if as_json:
        typer.echo(report_json(report))
        return
    if report.profile is None:
        typer.echo(report.note)
        return
    typer.echo(
        f"profile {report.profile} at {report.address} (model {report.model}), launcher pid {report.launcher_pid}"
    )
    table = new_table("INSTANCE", "ROLE", "PID", "PORT", "STATE", "HEALTH", "UPTIME", "RESTARTS", "REASON")
    starting = any(instance.loading or instance.waits_for for instance in report.instances)
    if starting:
        table.add_column("START")
    for instance in report.instances:
        start = (_start(instance),) if starting else ()
        table.add_row(*(Text(cell) for cell in (*_status_row(instance), *start)))
    print_table(table)


def pairs(matrix: Matrix, *, as_json: bool) -> None:
    """How hand-overs between each prefill and each decode instance went."""
    if as_json:
        typer.echo(to_json_of_pairs(matrix))
        return
    table = new_table("PREFILL", "DECODE", "STANDING", "PROVEN", "HANDED OVER", "FAILED", "LAST", "REASON")
    now = time.time()
    for pair in matrix.pairs:
        proven = pair.proof.at if pair.proof is not None and pair.proof.verdict == "proven" else None
        counts = (str(pair.handed_over), str(pair.failed), ago(pair.last_handed_over, now))
        cells = (pair.prefill, pair.decode, pair.standing, ago(proven, now), *counts, pair.reason)
        table.add_row(*(Text(cell) for cell in cells))
    print_table(table)
    _blamed(matrix)


def proofs(matrix: Matrix, *, as_json: bool) -> None:
    """What canaries have shown just now."""
    if as_json:
        typer.echo(to_json_of_pairs(matrix))
        return
    print_table(proof_table(matrix))
    _blamed(matrix)


def proof_table(matrix: Matrix) -> Table:
    """One canary each: verdict, KV tokens, times."""
    table = new_table("PREFILL", "DECODE", "VERDICT", "KV TOKENS", "TOOK", "TRANSFER", "REASON")
    for pair in matrix.pairs:
        proof = pair.proof
        verdict = (pair.standing if proof is None else proof.verdict).replace("_", " ")
        tokens = str(proof.tokens) if proof is not None and proof.tokens else ""
        took = f"{proof.seconds * 1000:.0f} ms" if proof is not None and proof.seconds is not None else ""
        moved = speed(None if proof is None else proof.bytes_per_second)
        reason = pair.reason if proof is None else proof.reason
        table.add_row(*(Text(cell) for cell in (pair.prefill, pair.decode, verdict, tokens, took, moved, reason)))
    return table


def _blamed(matrix: Matrix) -> None:
    for name, reason in matrix.blamed.items():
        typer.echo(f"{name}: {reason}")


def log_line(line: LogLine, *, as_json: bool) -> None:
    """One line with the instance it comes from."""
    text = (
        json.dumps({"instance": line.instance, "line": line.text}) if as_json else f"{line.instance:12} | {line.text}"
    )
    typer.echo(text)


def _status_row(instance: InstanceReport) -> tuple[str, ...]:
    up = "" if instance.started_at is None else duration(time.time() - instance.started_at)
    return (
        instance.name,
        instance.role,
        str(instance.pid or ""),
        str(instance.port),
        f"{instance.state.value}, drained" if instance.drained else instance.state.value,
        instance.health,
        up if instance.pid else "",
        str(instance.restarts),
        instance.reason or "",
    )


def _start(instance: InstanceReport) -> str:
    if instance.waits_for:
        return f"waits for {instance.waits_for}"
    if instance.loading is None or instance.started_at is None:
        return ""
    return f"{instance.loading}; {time.time() - instance.started_at:.0f} s of {instance.start_budget:.0f} s"


def _details(instance: EngineInstance | ProxyInstance) -> str:
    if isinstance(instance, ProxyInstance):
        return ""
    gpus = f", GPU {','.join(instance.devices)}" if instance.devices else ""
    side = f", side channel {instance.side_channel_port}" if instance.side_channel_port else ""
    return f" ({instance.role}{gpus}{side})"


def _command(instance: EngineInstance | ProxyInstance) -> str:
    """As a shell would take it, one option a line."""
    return shlex.join(instance.argv).replace(" --", " \\\n        --")
