"""What engines are started with."""

from pathlib import Path

from launcher.local.recipes import engine_recipes
from launcher.local.run_directory import RunDirectory
from tests.launcher.builders import plan


def test_a_vllm_port_of_the_launcher_s_own_environment_reaches_no_engine():
    inherited = {"VLLM_PORT": "tcp://10.0.0.1:80", "MINE": "x"}
    for recipe in engine_recipes(plan("demo"), RunDirectory(Path("/run/duet")), inherited, "mark"):
        assert "VLLM_PORT" not in recipe.command.env
        assert recipe.command.env["MINE"] == "x"
