"""A deployment whose proxy asks operators for a key: its owner needs none."""

import stat
from pathlib import Path

import httpx
import pytest
import yaml

from launcher.local import operator_key
from proxy.keys import new_key
from tests.launcher.local.conftest import Launch


@pytest.fixture
def key(profile: Path) -> str:
    """An operator's, and clients need one, too."""
    (key, digest), (_, clients) = new_key(), new_key()
    content = yaml.safe_load(profile.read_text())
    content["proxy"] |= {
        "admin_keys": [{"name": "olga", "sha256": digest}],
        "client_keys": [{"name": "alice", "sha256": clients}],
    }
    profile.write_text(yaml.safe_dump(content))
    return key


def test_the_verbs_of_the_launcher_work_and_others_need_a_key(
    launch: Launch, command, key: str, folder: Path, proxy_port: int
):
    launch().wait_ready()
    assert command("prove").returncode == 0
    assert command("status", "--pairs").returncode == 0
    assert command("top", "--once").returncode == 0
    assert command("drain", "decode-0").returncode == 0
    url = f"http://127.0.0.1:{proxy_port}/pairs/prove"
    assert httpx.post(url, trust_env=False).status_code == 401
    assert httpx.post(url, headers={"authorization": f"Bearer {key}"}, trust_env=False).status_code == 200
    own = folder / "run" / "operator.key"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    written = [file for file in (folder / "run").rglob("*") if file.is_file() and file != own]
    assert not [file for file in written if own.read_text() in file.read_text(errors="replace")]


def test_where_operators_need_none_no_key_is_made(launch: Launch, folder: Path):
    (folder / "run").mkdir()
    (folder / "run" / "operator.key").write_text("of an earlier run")
    launch().wait_ready()
    assert not (folder / "run" / "operator.key").exists()


@pytest.mark.parametrize(
    ("content", "shown"),
    [(b"key\n", {"authorization": "Bearer key"}), (b"", {}), (b"\xff\xfe", {}), (b"one\ntwo", {}), (b"a\0b", {})],
)
def test_what_can_be_no_key_is_shown_to_nobody(tmp_path: Path, content: bytes, shown):
    (tmp_path / "operator.key").write_bytes(content)
    assert operator_key.headers(tmp_path) == shown
