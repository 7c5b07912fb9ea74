from __future__ import annotations

from pathlib import Path

import pytest

from deploy.doctor.findings import Finding
from deploy.doctor.keys import check_keys
from deploy.doctor.read_keys import read_keys
from tests.deploy.test_profile import LLM, ROUTER, STT, VOICE, profile_of

KEY = "0123456789abcdef"


def key(path: Path, text: str = KEY, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def checked(tmp_path: Path, profile: str) -> dict[str, Finding]:
    found = check_keys(*read_keys(profile_of(tmp_path, profile)))
    return {f"{finding.name} {finding.level}": finding for finding in found}


def demanding(section: str, port: int, path: Path) -> str:
    return section.replace(f"port: {port}", f"port: {port}, api_key_file: {path}")


def test_profile_without_keys_has_no_findings(tmp_path: Path) -> None:
    assert checked(tmp_path, VOICE + STT + ROUTER + LLM) == {}


def test_readable_key_is_ok_and_not_shown(tmp_path: Path) -> None:
    path = key(tmp_path / "key")
    found = checked(tmp_path, demanding(STT, 8101, path))
    assert list(found) == ["stt.edge.api_key_file ok"]
    assert KEY not in str(found)


@pytest.mark.parametrize(
    ("text", "mode", "words", "mend"),
    [
        (KEY, 0o644, "readable by everyone", "chmod 600"),
        ("short", 0o600, "at least 16 characters", "openssl rand -hex 24 >"),
        ("", 0o600, "is empty", "openssl rand -hex 24 >"),
    ],
)
def test_bad_key_file_names_the_command(tmp_path: Path, text: str, mode: int, words: str, mend: str) -> None:
    path = key(tmp_path / "key", text, mode)
    finding = checked(tmp_path, demanding(STT, 8101, path))["stt.edge.api_key_file problem"]
    assert words in finding.found
    assert mend in finding.mend


def test_key_file_that_is_a_device_is_left_alone(tmp_path: Path) -> None:
    finding = checked(tmp_path, demanding(STT, 8101, Path("/dev/zero")))["stt.edge.api_key_file problem"]
    assert "no regular file" in finding.found
    assert finding.mend == "profile: stt.edge.api_key_file: a file that holds the key"


def test_absent_key_file_is_to_be_made(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "stt.key"
    finding = checked(tmp_path, demanding(STT, 8101, path))["stt.edge.api_key_file problem"]
    assert finding.mend.startswith(f"mkdir -p {path.parent} && (umask 077;")


def test_client_without_the_key_its_service_demands_is_a_problem(tmp_path: Path) -> None:
    path = key(tmp_path / "key")
    found = checked(tmp_path, VOICE + demanding(STT, 8101, path) + demanding(LLM, 8104, path) + ROUTER)
    voice = found["voice.service_key_file problem"]
    assert voice.found == "not set, but the service at voice.stt_url demands a key"
    assert voice.mend == f"profile: voice.service_key_file: {path}"
    assert "router.models[0].workers[0].api_key_file problem" in found


def test_client_with_another_key_is_a_problem(tmp_path: Path) -> None:
    path, other = key(tmp_path / "key"), key(tmp_path / "other", "another key of enough length")
    profile = VOICE + f"  service_key_file: {other}\n" + demanding(STT, 8101, path)
    finding = checked(tmp_path, profile)["voice.service_key_file problem"]
    assert f"{other} holds another key than the service at voice.stt_url demands ({path})" in finding.found
    same = VOICE + f"  service_key_file: {key(tmp_path / 'copy')}\n" + demanding(STT, 8101, path)
    assert "voice.service_key_file problem" not in checked(tmp_path, same)


def test_password_of_a_turn_server_is_read_too(tmp_path: Path) -> None:
    server = f"{{url: 'turn:turn.example.org', username: u, credential_file: {key(tmp_path / 'turn', 'pw')}}}"
    profile = VOICE + f"  webrtc: {{ice_servers: [{server}]}}\n"
    assert "voice.webrtc.ice_servers[0].credential_file ok" in checked(tmp_path, profile)


def test_key_that_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    profile = VOICE + demanding(STT, 8101, tmp_path / "none")
    assert list(checked(tmp_path, profile)) == ["stt.edge.api_key_file problem"]
