"""Verbs for a deployment in a Kubernetes cluster."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from launcher import loader
from launcher.cluster import chart as charts
from launcher.cluster import names, report
from launcher.cluster.deploy import Deployer, Wanted
from launcher.cluster.helm import Helm
from launcher.cluster.judged import judged
from launcher.cluster.wait import Clock
from launcher.commands.options import ModelOption, ProfileArgument, SetOption, name_of, warn, with_model
from launcher.tables import new_table, print_table

if TYPE_CHECKING:
    from launcher.cluster.api import Cluster

INTERRUPTED = 130

NamespaceOption = Annotated[
    str | None,
    typer.Option("--namespace", "-n", show_default="that of the context", help="Where."),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", show_default="the current one", help="Of the kubeconfig."),
]
ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="Its name; see `status --cluster`.")]
WithinOption = Annotated[
    float | None,
    typer.Option("--within", min=1, show_default="as long as the plan allows", help="Seconds to wait at most."),
]


def deploy_profile(
    profile: ProfileArgument,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    release: Annotated[
        str | None, typer.Option("--release", show_default="the profile's name", help="What Helm calls it.")
    ] = None,
    overrides: SetOption = None,
    model: ModelOption = None,
    values: Annotated[
        list[Path] | None,
        typer.Option(
            *("--values", "-f"),
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Values of the chart, which win over the plan; may be repeated.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--helm-set", metavar="KEY=VALUE", help="One value of the chart; may be repeated."),
    ] = None,
    within: WithinOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")] = False,
    create_namespace: Annotated[
        bool, typer.Option("--create-namespace", help="Make the namespace if it is not there.")
    ] = False,
    chart: Annotated[
        str | None, typer.Option("--chart", show_default="the one that comes with it", help="Another chart.")
    ] = None,
) -> None:
    """Install a profile's engines and proxy in a Kubernetes cluster, or upgrade them; wait until they serve."""
    name = name_of(profile)
    called = _checked(release if release is not None else names.release_of(name))
    found = judged(loader.load(profile, with_model(overrides, model)), name, os.environ)
    warn(found.findings)
    wanted = Wanted(
        called, chart or str(charts.shipped()), found.values, values or [], settings or [], create_namespace
    )
    with _deployer(namespace, context) as deployer:
        if dry_run:
            deployer.preview(wanted)
            return
        with _interruptible(f"what was begun of {called} goes on in the cluster; `launcher status --cluster` shows it"):
            deployer.deploy(wanted, within)


def rollback_release(
    release: ReleaseArgument,
    to: Annotated[int | None, typer.Option("--to", min=1, show_default="the one before", help="Revision.")] = None,
    namespace: NamespaceOption = None,
    context: ContextOption = None,
    within: WithinOption = None,
) -> None:
    """Take a release in a Kubernetes cluster back to an earlier revision; wait until it serves."""
    _checked(release)
    with (
        _deployer(namespace, context) as deployer,
        _interruptible(f"what was begun of {release} goes on in the cluster; `launcher status --cluster` shows it"),
    ):
        deployer.rollback(release, to, within)


def undeploy_release(
    release: ReleaseArgument, namespace: NamespaceOption = None, context: ContextOption = None
) -> None:
    """Take a release out of a Kubernetes cluster; return when nothing of it runs any more."""
    _checked(release)
    with (
        _deployer(namespace, context) as deployer,
        _interruptible(f"{release} goes on to end; `kubectl get pods` shows what is left"),
    ):
        deployer.undeploy(release)


def show_cluster(namespace: str | None, context: str | None, release: str | None, *, as_json: bool) -> bool:
    """Print all releases of Duet in a namespace, or one; whether all are healthy."""
    with _connected(namespace, context) as (helm, cluster):
        releases = [helm.release(release)] if release else [each for each in helm.releases() if each.is_ours]
        found = [report.of(each, cluster.look(each.name), time.time()) for each in releases]
        where = cluster.namespace
    if as_json:
        typer.echo(json.dumps({"namespace": where, "releases": [asdict(each) for each in found]}, indent=2))
    elif not found:
        typer.echo(f"no release of Duet is in the namespace {where}")
    else:
        for each in found:
            _print(each, where)
    return bool(found) and all(each.healthy for each in found)


def _print(found: report.ReleaseReport, namespace: str) -> None:
    state = "serves" if found.healthy else "not healthy"
    typer.echo(f"{found.name} (revision {found.revision}, {found.status}) in the namespace {namespace}: {state}")
    if found.proxy:
        typer.echo(f"the proxy says: {found.proxy}")
    table = new_table(*report.COLUMNS)
    for pod in found.pods:
        table.add_row(*(Text(cell) for cell in report.row(pod)))
    print_table(table)
    for line in found.problems:
        typer.echo(f"  ! {line}")
    for line in found.notes:
        typer.echo(f"note: {line}")


@contextmanager
def _connected(namespace: str | None, context: str | None) -> "Iterator[tuple[Helm, Cluster]]":
    from launcher.cluster.api import Cluster  # a second, which no other verb shall wait for

    # As for Helm itself.
    context = context or os.environ.get("HELM_KUBECONTEXT")
    cluster = Cluster(namespace or os.environ.get("HELM_NAMESPACE"), context, os.environ)
    try:
        yield Helm(cluster.namespace, context, os.environ), cluster
    finally:
        cluster.close()


@contextmanager
def _deployer(namespace: str | None, context: str | None) -> Iterator[Deployer]:
    with _connected(namespace, context) as (helm, cluster):
        yield Deployer(helm, cluster, Console(highlight=False), Clock())


@contextmanager
def _interruptible(then: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted; {then}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _checked(release: str) -> str:
    if not names.is_release(release):
        raise typer.BadParameter(f"{release!r}: small letters, digits and dashes, 53 at most", param_hint="RELEASE")
    return release
