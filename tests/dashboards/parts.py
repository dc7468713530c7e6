"""What all dashboards are made of: panels over Prometheus' queries, of the deployments that are chosen above them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    MatcherConfig,
    ValueMap,
    ValueMappingResult,
    VariableModel,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

CHOSEN = 'job=~"$job",namespace=~"$namespace"'
"""The deployments of a dashboard."""
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_RUNBOOK = "docs/runbook.md"
_THRESHOLD = "threshold"


@dataclass(frozen=True)
class Query:
    """``expr`` in PromQL, and how its series are called."""

    expr: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One picture."""

    title: str
    unit: str
    """As Grafana knows it: ``s``, ``percentunit``, ``reqps``, ``short``, ``bytes``..."""
    good: str
    """What it shows, and what it looks like when all is well."""
    queries: tuple[Query, ...]
    runbook: tuple[str, ...] = ()
    """Problems that it shows."""
    thresholds: tuple[str, ...] = ()
    """Of ``duet_alert_threshold``, as lines of their own."""

    width = 8
    height = 8

    @property
    def description(self) -> str:
        """With the places where one reads on."""
        return " ".join([self.good, *(f"Runbook: {_RUNBOOK}#{problem}" for problem in self.runbook)])

    @property
    def asked(self) -> tuple[Query, ...]:
        """All queries."""
        lines = (
            Query(f'max(duet_alert_threshold{{alert="{alert}",{CHOSEN}}})', f"{_THRESHOLD} {alert}")
            for alert in self.thresholds
        )
        return (*self.queries, *lines)

    def built(self) -> builders.Panel:
        """For Grafana."""
        legend = common_builders.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.LIST)
        tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
        panel = timeseries.Panel().min(0).fill_opacity(8).line_width(1)
        return self._dressed(
            panel.legend(legend.placement(common.LegendPlacement.BOTTOM)).tooltip(tooltip)
        ).with_override(
            MatcherConfig("byRegexp", f"^{_THRESHOLD} .*"),
            [
                DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "red"}),
                DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 8]}),
                DynamicConfigValue("custom.fillOpacity", 0),
            ],
        )

    def _dressed(self, panel):
        panel = panel.title(self.title).description(self.description).unit(self.unit).datasource(SOURCE)
        for number, query in enumerate(self.asked):
            panel = panel.with_target(self._target(query, chr(ord("A") + number)))
        return panel.span(self.width).height(self.height)

    def _target(self, query: Query, ref: str) -> prometheus.Dataquery:
        return prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(ref).range()


class Number(Panel):
    """One number, as it is now."""

    width = 4
    height = 4

    def built(self):
        last = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
        panel = stat.Panel().no_value("–").graph_mode(common.BigValueGraphMode.NONE)
        return self._dressed(panel.reduce_options(last))

    def _target(self, query, ref):
        return super()._target(query, ref).instant()


class States(Panel):
    """0 and 1 over time, a line for each series."""

    words: Mapping[str, tuple[str, str]]

    def built(self):
        words = {
            value: ValueMappingResult(text=text, color=colour, index=number)
            for number, (value, (text, colour)) in enumerate(self.words.items())
        }
        return self._dressed(statetimeline.Panel().mappings([ValueMap(options=words)]).row_height(0.8))


class Good(States):
    """1 is as it should be."""

    words: Mapping[str, tuple[str, str]] = {"1": ("yes", "green"), "0": ("no", "red")}


class Bad(States):
    """0 is as it should be."""

    words: Mapping[str, tuple[str, str]] = {"0": ("no", "green"), "1": ("yes", "red")}


class Table(Panel):
    """Labels of what there is now."""

    width = 24

    def built(self):
        hidden = {"Time": True, "Value": True, "__name__": True, "instance": True, "metrics_path": True}
        return self._dressed(table.Panel().show_header(True)).with_transformation(
            DataTransformerConfig("organize", options={"excludeByName": hidden})
        )

    def _target(self, query, ref):
        return super()._target(query, ref).instant().format(PromQueryFormat.TABLE)


@dataclass(frozen=True)
class Row:
    """Panels below a heading."""

    title: str
    panels: tuple[Panel, ...]
    is_open: bool = True


@dataclass(frozen=True)
class Page:
    """A dashboard. Its file is named after it."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple["Choice", ...] = ()
    """Besides those that all have."""

    @property
    def panels(self) -> Iterable[Panel]:
        """All of them."""
        return (panel for row in self.rows for panel in row.panels)

    def built(self) -> Dashboard:
        """For Grafana."""
        builder = (
            builders.Dashboard(self.title)
            .uid(f"duet-{self.name}")
            .description(self.description)
            .tags(["duet"])
            .refresh("30s")
            .time("now-1h", "now")
            .timezone("browser")
            .with_variable(builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
            .with_variable(Choice("job", "Deployment", "label_values(duet_draining, job)"))
            .with_variable(Choice("namespace", "Namespace", 'label_values(duet_draining{job=~"$job"}, namespace)'))
            .link(
                builders.DashboardLink("Duet")
                .type(DashboardLinkType.DASHBOARDS)
                .tags(["duet"])
                .as_dropdown(True)
                .include_vars(True)
                .keep_time(True)
            )
        )
        for variable in self.variables:
            builder = builder.with_variable(variable)
        number = 0
        for row in self.rows:
            number += 1
            heading = builders.Row(row.title).id(number).collapsed(not row.is_open)
            made = []
            for panel in row.panels:
                number += 1
                made.append(panel.built().id(number))
            if row.is_open:
                builder = builder.with_row(heading)
                for panel in made:
                    builder = builder.with_panel(panel)
            else:
                for panel in made:
                    heading = heading.with_panel(panel)
                builder = builder.with_row(heading)
        return builder.build()


class Choice(builders.QueryVariable):
    """A label's values, of which all or some are chosen; no value at all is one of all."""

    def __init__(self, name: str, label: str, query: str) -> None:
        super().__init__(name)
        self.label(label).query(query).datasource(SOURCE).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).multi(True)

    def build(self) -> VariableModel:
        model = super().build()
        model.include_all, model.all_value = True, ".*"
        return model


def rate(counter: str, by: str, more: str = "", chosen: str = CHOSEN) -> str:
    """By second; of a proxy's counter."""
    return f"sum by ({by}) (rate({counter}{{{more}{chosen}}}[$__rate_interval]))"


def engine_rate(counter: str, by: str = "engine", more: str = "", chosen: str = CHOSEN) -> str:
    """By second; of an engine's counter, which several proxies may tell."""
    kept = ", ".join(dict.fromkeys(["job", "namespace", "engine", *by.split(", ")]))
    inner = f"sum by ({kept}, instance) (rate({counter}{{{more}{chosen}}}[$__rate_interval]))"
    return f"sum by ({by}) (max by ({kept}) ({inner}))"


def engine_now(gauge: str, by: str = "engine", more: str = "", chosen: str = CHOSEN) -> str:
    """Of an engine, which several proxies may tell."""
    return f"max by ({by}) ({gauge}{{{more}{chosen}}})"


def quantile(share: float, histogram: str, by: str = "", more: str = "", chosen: str = CHOSEN) -> str:
    """Of a histogram."""
    kept = f"{by}, le" if by else "le"
    return (
        f"histogram_quantile({share}, sum by ({kept}) (rate({histogram}_bucket{{{more}{chosen}}}[$__rate_interval])))"
    )


def percentiles(histogram: str, *, more: str = "") -> tuple[Query, ...]:
    """The median and the slow ones."""
    return tuple(Query(quantile(share, histogram, more=more), f"p{share * 100:.0f}") for share in (0.5, 0.95, 0.99))


def share(of: str, whole: str) -> str:
    """Nothing where there is no whole."""
    return f"{of} / ({whole} > 0)"
