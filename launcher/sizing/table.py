"""How sizes are printed for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import typer
from rich.table import Table
from rich.text import Text

from launcher.sizing.changes import Change, Option, Transfer
from launcher.sizing.deployment import DeploymentSize, DeviceSize
from launcher.sizing.history import Record
from launcher.sizing.report import OptionsReport, Report
from launcher.sizing.size import InstanceSize, Part, Verdict
from launcher.tables import new_table, print_table

_GIB = 2**30


def report(told: Report) -> None:
    """Each kind of engine, its devices, and what other precisions would change."""
    deployment = told.deployment
    typer.echo(f"{deployment.profile}: {deployment.verdict} (with a margin of {deployment.margin:.0%})")
    for model, source in deployment.sources.items():
        typer.echo(f"  {source}" if model in source else f"  {model}: {source}")
    groups = _alike(deployment.instances)
    typer.echo()
    print_table(_instances(groups))
    for each in groups.values():
        for text in (*each.unknown, *each.remarks):
            typer.echo(f"{each.role}: {text}")
    if deployment.devices:
        typer.echo()
        print_table(_devices(deployment.devices))
    if told.on_cards:
        typer.echo("\nThis machine does not have such devices (roles.*.device_memory says what they have). On others:")
        print_table(_cards(told.on_cards))
    if told.transfer is not None:
        typer.echo(f"\n{_transfer(told.transfer)}")
    for roles, found in _together(told.changes).items():
        typer.echo(f"\nWhat other precisions would change ({roles}, on each device):")
        print_table(_changes(found))
    typer.echo(
        "\nWithout ±: exact, as the engine counts. Estimated and counted figures lie within what follows ±; the engine "
        "measures them\nwhen it starts (`launcher size --running` shows what came)."
    )


def options(told: OptionsReport) -> None:
    """What fits on devices that somebody named."""
    typer.echo(f"{told.subject} on {told.devices} x {_gib(told.card)}:")
    for reason in told.reasons:
        typer.echo(f"  {reason}")
    if told.together:
        typer.echo(f"  {told.together}")
    for role, found in told.options.items():
        if role:
            typer.echo(f"\n{role}:")
        fitting = [option for option in found if option.size.verdict in {Verdict.FITS, Verdict.TIGHT}]
        shorter = [option for option in found if option.size.verdict is Verdict.DOES_NOT_FIT and _longest(option.size)]
        if not fitting and not shorter:
            typer.echo("nothing fits: not even one request, in any precision, on all of them together")
            continue
        if not fitting:
            typer.echo("nothing fits at this length of requests; shorter ones would:")
        print_table(_options(fitting or shorter))


def records(found: Iterable[Record]) -> None:
    """What came at the last start of each engine, beside what was planned."""
    table = new_table("ENGINE", "FIGURE", "PLANNED", "CAME", "OFF BY")
    for each in found:
        planned, real = each.planned, each.real
        figures: tuple[tuple[str, float | None, float | None, Callable[[float], str]], ...] = (
            ("weights", planned.weights, real.weights, _gib),
            ("KV cache", planned.kv_memory, real.kv_memory, _gib),
            ("KV tokens", planned.tokens, real.tokens, "{:,.0f}".format),
            ("requests at once", planned.concurrency, real.concurrency, "{:.2f}".format),
        )
        for figure, before, after, shown in figures:
            if after is not None:
                off = "" if before is None or not after else f"{(before - after) / after:+.1%}"
                cells = (each.instance, figure, "unknown" if before is None else shown(before), shown(after), off)
                table.add_row(*(Text(text) for text in cells))
    print_table(table)


def _alike(instances: Iterable[InstanceSize]) -> Mapping[str, InstanceSize]:
    """Engines of one role that differ in name and devices alone, together."""
    groups: dict[tuple[object, ...], list[InstanceSize]] = {}
    for each in instances:
        groups.setdefault((each.role, each.parts, each.kv, each.card, each.unknown), []).append(each)
    return {
        each[0].name if len(each) == 1 else f"{each[0].name} to {each[-1].name}": each[0] for each in groups.values()
    }


def _together(told: Mapping[str, tuple[Change, ...]]) -> Mapping[str, tuple[Change, ...]]:
    """Roles whose engines come to the same, together."""
    rows = {role: [(each.weights, each.size.fixed, each.size.kv) for each in found] for role, found in told.items()}
    roles: dict[str, list[str]] = {}
    for role, row in rows.items():
        if row:
            first = next(other for other in rows if rows[other] == row)
            roles.setdefault(first, []).append(role)
    return {" and ".join(alike): told[first] for first, alike in roles.items()}


def _instances(groups: Mapping[str, InstanceSize]) -> Table:
    table = new_table("ON EACH DEVICE", *groups)
    shown = [*groups.values()]

    def row(title: str, cells: Iterable[str]) -> None:
        texts = [*cells]
        if any(texts):
            table.add_row(Text(title), *(Text(text) for text in texts))

    row("devices", (f"{', '.join(each.devices) or 'CPU'} {each.sharding}".strip() for each in shown))
    row("precision", (each.precision for each in shown))
    row("parameters", ("" if each.parameters is None else _billions(each.parameters) for each in shown))
    for name in dict.fromkeys(part.name for each in shown for part in each.parts):
        found = [next((part for part in each.parts if part.name == name), None) for each in shown]
        row(name, ("" if part is None else _part(part) for part in found))
    row("KV cache", ("unknown" if each.kv is None else _amount(each.kv.bytes, each.kv.error) for each in shown))
    row("together", (_gib(each.total) for each in shown))
    row("may use", ("" if each.budget is None else f"{_gib(each.budget)} of {_gib(each.card or 0)}" for each in shown))
    row("KV tokens", (_tokens(each) for each in shown))
    row("requests at once", (_requests(each) for each in shown))
    row("longest request", ("" if each.kv is None else f"{each.kv.longest:,} tokens" for each in shown))
    row("KV of a token", ("" if each.kv is None else f"{each.kv.bytes_per_token:,} B" for each in shown))
    row("verdict", (_why(each) for each in shown))
    return table


def _why(each: InstanceSize) -> str:
    """Why it does not fit, if so."""
    if each.verdict is not Verdict.DOES_NOT_FIT or each.budget is None:
        return each.verdict.value
    if each.kv is not None and each.kv.needed > each.kv.bytes:
        return f"does not fit: one request needs {_gib(each.kv.needed)} of KV"
    return f"does not fit: {_gib(each.total)} of {_gib(each.budget)}"


def _devices(devices: Sequence[DeviceSize]) -> Table:
    table = new_table("DEVICE", "NEEDED", "FREE NOW", "OF", "BY", "VERDICT")
    for each in devices:
        cells = (_gib(each.needed), _gib(each.free), _gib(each.total), ", ".join(each.instances), each.verdict.value)
        table.add_row(*(Text(text) for text in (each.name, *cells)))
    return table


def _cards(found: Mapping[int, DeploymentSize]) -> Table:
    table = new_table("DEVICES OF", "ENGINE", "KV CACHE", "KV TOKENS", "REQUESTS AT ONCE", "VERDICT")
    for card, deployment in found.items():
        for name, each in _alike(deployment.instances).items():
            cache = "" if each.kv is None else _amount(each.kv.bytes, each.kv.error)
            cells = (_gib(card), name, cache, _tokens(each), _requests(each), each.verdict.value)
            table.add_row(*(Text(text) for text in cells))
    return table


def _changes(found: Iterable[Change]) -> Table:
    table = new_table(
        "WEIGHTS", "KV CACHE", "BESIDE THE KV CACHE", "KV OF A TOKEN", "KV TOKENS", "REQUESTS AT ONCE", "VERDICT"
    )
    for change in found:
        each = change.size
        token = "" if each.kv is None else f"{each.kv.bytes_per_token:,} B"
        cells = (_gib(each.fixed), token, _tokens(each), _requests(each), each.verdict.value)
        table.add_row(*(Text(text) for text in (change.weights, change.kv_cache, *cells)))
    return table


def _options(found: Iterable[Option]) -> Table:
    table = new_table(
        "TP", "ENGINES", "WEIGHTS", "BESIDE THE KV CACHE", "KV TOKENS", "REQUESTS AT ONCE", "LONGEST", "VERDICT"
    )
    for option in found:
        each = option.size
        longest = f"{_longest(each):,}"
        cells = (option.weights, _gib(each.fixed), _tokens(each), _requests(each), longest, each.verdict.value)
        table.add_row(*(Text(text) for text in (str(option.tensor_parallel), str(option.instances), *cells)))
    return table


def _transfer(found: Transfer) -> str:
    time = (
        "; --bandwidth says how long that takes"
        if found.seconds is None
        else f", {found.seconds * 1000:,.0f} ms on its way"
    )
    return f"The KV cache of a prompt of {found.tokens:,} tokens: {found.bytes / 1e6:,.0f} MB{time}"


def _longest(each: InstanceSize) -> int:
    return 0 if each.kv is None else each.kv.longest


def _tokens(each: InstanceSize) -> str:
    if each.kv is None:
        return ""
    least = "" if each.kv.error == 0 else f" (at least {each.kv.fewest_tokens:,})"
    return f"{each.kv.tokens:,}{least}"


def _requests(each: InstanceSize) -> str:
    return "" if each.kv is None else f"{each.kv.concurrency:.1f} of {each.kv.length:,} tokens"


def _part(part: Part) -> str:
    return _amount(part.bytes, part.error)


def _amount(size: int, error: int) -> str:
    return _gib(size) if error == 0 else f"{_gib(size)} ± {error / _GIB:.2f}"


def _gib(size: float) -> str:
    return f"{size / _GIB:.2f} GiB"


def _billions(number: int) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"
