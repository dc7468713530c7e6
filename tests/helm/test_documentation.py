"""docs/kubernetes.md names values that are there, and what the chart's version is said to be it is."""

import re
import tomllib

import yaml
from jsonschema import Draft7Validator

from tests.helm import walk
from tests.helm.charts import CHART, ROOT

_PAGE = (ROOT / "docs/kubernetes.md").read_text()


def test_values_in_commands_are_there():
    given = re.findall(r"--set ([a-z][\w.]*)=(\S+?)[`\s]", _PAGE)
    assert given
    for path, text in given:
        value = walk.at(tuple(path.split(".")), yaml.safe_load(text))
        assert not list(Draft7Validator(walk.schema()).iter_errors(value)), path


def test_values_in_examples_are_there():
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)]
    ours = [block for block in blocks if block.keys() <= walk.defaults().keys()]
    assert len(ours) == len(blocks) - 1, "all but the one of prometheus-adapter"
    for block in ours:
        assert not [error.message for error in Draft7Validator(walk.schema()).iter_errors(block)]


def test_values_named_in_text_are_there():
    roots = "|".join(walk.defaults().keys() - {"proxy", "model"})
    for path in re.findall(rf"`((?:{roots})\.[\w.]+)", _PAGE):
        walk.of(tuple(path.rstrip(".").split(".")))


def test_chart_and_image_have_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]
    assert walk.defaults()["proxy"]["image"]["tag"] == project["version"]


def test_engines_are_of_the_version_that_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [pinned] = [each for each in project["optional-dependencies"]["gpu"] if each.startswith("vllm==")]
    assert walk.defaults()["engine"]["image"]["tag"] == f"v{pinned.removeprefix('vllm==')}"
