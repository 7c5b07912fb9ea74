from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.doctor.examine_profile import examine_profile
from deploy.doctor.findings import Finding
from deploy.doctor.machine import check_machine
from deploy.doctor.read_machine import read_machine
from deploy.paths import DEFAULT_CATALOGUE, DEFAULT_PROFILE
from tests.deploy.test_profile import LLM, ROUTER, STT, VOICE


def examined(profile: Path, cache: Path, catalogue: Path = DEFAULT_CATALOGUE) -> dict[tuple[str, str], Finding]:
    needs, findings = examine_profile(profile, catalogue, cache)
    return {
        (each.group, each.name): each for each in [*check_machine(read_machine(cache), needs, "offhook"), *findings]
    }


@pytest.mark.parametrize(
    "text",
    ["", "]", "stt: 3", "\0", "voice: {edge: {port: 99999999}}", "\xff", "stt: {edge: {host: 0.0.0.0, port: 1}}"],
)
def test_whatever_stands_in_the_profile_is_a_finding(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text, encoding="latin-1")
    (finding,) = examine_profile(path, DEFAULT_CATALOGUE, tmp_path)[1]
    assert (finding.group, finding.level) == ("profile", "problem")
    assert str(path) in finding.found
    assert "docs/profile.md" in finding.mend


def test_absent_profile_names_the_nearest(tmp_path: Path) -> None:
    finding = examined(tmp_path / "cpu.yml", tmp_path)["profile", "profile"]
    assert (finding.level, finding.mend) == ("problem", f"did you mean {DEFAULT_PROFILE}?")


def test_folder_and_broken_catalogue_are_findings(tmp_path: Path) -> None:
    assert examined(tmp_path, tmp_path)["profile", "profile"].level == "problem"
    (tmp_path / "models.toml").write_text("]")
    assert examined(DEFAULT_PROFILE, tmp_path, tmp_path / "models.toml")["profile", "profile"].level == "problem"


def test_missing_and_damaged_weights_are_problems_and_need_disk(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "silero-vad"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"short")
    (folder / ".complete").touch()
    found = examined(DEFAULT_PROFILE, tmp_path)
    assert found["weights", "silero-vad"].mend.endswith("models verify silero-vad")
    assert found["weights", "whisper-base"].mend.endswith("models pull whisper-base")
    assert "needed for what is missing" in found["machine", "cache"].found


def test_cache_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    found = examined(DEFAULT_PROFILE, tmp_path / "cache")
    assert found["machine", "cache"].level == "problem"
    assert found["weights", "silero-vad"].level == "problem"


def test_each_part_of_a_profile_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(ROUTER + STT + LLM)
    groups = {group for group, _ in examined(path, tmp_path)}
    assert groups == {"machine", "profile", "weights", "services"}
    path.write_text(VOICE + STT.replace("port: 8101", f"port: 8101, api_key_file: {tmp_path / 'none'}"))
    found = examined(path, tmp_path)
    assert {group for group, _ in found} == {"machine", "profile", "weights", "services", "callers", "keys"}
    assert ("services", "voice.tts_url") in found


def test_addresses_of_nobody_are_findings(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    strange = STT.replace("{port: 8101}", f"{{port: 8101, host: nobody.invalid, api_key_file: {tmp_path / 'none'}}}")
    path.write_text(VOICE.replace("127.0.0.1:8103", "nobody.invalid:1") + strange)
    found = examined(path, tmp_path)
    assert found["services", "stt"].level == "problem"
    assert found["services", "voice.llm_url"].level == "problem"


def test_link_to_itself_and_pipe_are_no_misspelt_names(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    for name, problem in (("loop.yaml", "Too many levels of symbolic links"), ("pipe.yaml", "no regular file")):
        finding = examined(tmp_path / name, tmp_path)["profile", "profile"]
        assert problem in finding.found
        assert "docs/profile.md" in finding.mend
