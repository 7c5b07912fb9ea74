from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from deploy.catalogue import read_catalogue
from deploy.paths import DEFAULT_PROFILE
from deploy.profile import Profile, log_folder, nearest_profile, read_profile, specs
from deploy.restarts import Restarts
from wire.config import ConfigError

VOICE = """
voice:
  edge: {port: 8080}
  stt_url: http://127.0.0.1:8101
  tts_url: http://127.0.0.1:8102
  llm_url: http://127.0.0.1:8103
  llm_model: smollm2-135m-instruct
"""
STT = """
stt:
  edge: {port: 8101}
  models:
    - {id: whisper-tiny.en, languages: [en]}
"""
ROUTER = """
router:
  edge: {port: 8103}
  models:
    - id: smollm2-135m-instruct
      workers:
        - {url: "http://127.0.0.1:8104"}
"""
LLM = """
llm:
  workers:
    - edge: {port: 8104}
      id: smollm2-135m-instruct
      weights: smollm2-135m-instruct
"""


def profile_of(tmp_path: Path, text: str) -> Profile:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    return read_profile(path, read_catalogue())


def problem_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        profile_of(tmp_path, text)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_default_profile_starts_everything_in_order() -> None:
    profile = read_profile(DEFAULT_PROFILE, read_catalogue())
    started = specs(profile, DEFAULT_PROFILE)
    assert [spec.name for spec in started] == ["voice", "stt", "tts_engine", "router", "llm"]
    order = Restarts({spec.name: spec.needs for spec in started}).drain_order()
    assert [sorted(stage) for stage in order] == [["voice"], ["router"], ["llm", "stt", "tts_engine"]]


def test_default_profile_names_every_model_of_the_catalogue() -> None:
    catalogue = read_catalogue()
    assert set(read_profile(DEFAULT_PROFILE, catalogue).models) == set(catalogue.by_id)


def test_command_names_the_profile_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profile_of(tmp_path, STT)
    monkeypatch.chdir(tmp_path)
    (spec,) = specs(profile, Path("profile.yaml"))
    assert spec.command == (sys.executable, "-m", "stt", "--profile", str(tmp_path / "profile.yaml"))
    assert spec.environment["OPENBLAS_NUM_THREADS"] == "1"


def test_absent_section_is_not_started_and_not_waited_for(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, VOICE + ROUTER)
    needs = {spec.name: spec.needs for spec in specs(profile, tmp_path / "profile.yaml")}
    assert needs == {"voice": ("router",), "router": ()}


def test_call_server_that_talks_to_the_model_directly_waits_for_it(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, VOICE.replace("8103", "8104") + LLM)
    needs = {spec.name: spec.needs for spec in specs(profile, tmp_path / "profile.yaml")}
    assert needs["voice"] == ("llm",)


def test_each_llm_worker_is_a_process(tmp_path: Path) -> None:
    second = "    - {edge: {port: 8105}, id: other, weights: smollm2-135m-instruct}\n"
    profile = profile_of(tmp_path, ROUTER + LLM + second)
    by_name = {spec.name: spec for spec in specs(profile, tmp_path / "profile.yaml")}
    assert by_name["router"].needs == ("llm-1", "llm-2")
    assert by_name["llm-2"].command[-2:] == ("--worker", "2")
    assert by_name["llm-2"].addresses == (("127.0.0.1", 8105),)


def test_two_workers_may_serve_one_model_behind_the_router(tmp_path: Path) -> None:
    second = "    - {edge: {port: 8105}, id: smollm2-135m-instruct, weights: smollm2-135m-instruct}\n"
    router = ROUTER + '        - {url: "http://127.0.0.1:8105"}\n'
    profile = profile_of(tmp_path, router + LLM + second)
    workers = [spec for spec in specs(profile, tmp_path / "profile.yaml") if spec.name.startswith("llm")]
    assert [spec.command[-2:] for spec in workers] == [("--worker", "1"), ("--worker", "2")]


def test_unknown_section_names_line_and_nearest(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, STT + "routr: {}\n")
    assert problem == "profile.yaml:6: routr: unknown key; did you mean 'router'?"


def test_unknown_key_deep_in_a_section_names_line_and_nearest(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, STT.replace("languages:", "language:"))
    assert problem == "profile.yaml:5: stt.models[0].language: unknown key; did you mean 'languages'?"


def test_model_outside_the_catalogue_names_line_and_nearest(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, STT.replace("whisper-tiny.en", "whisper-tny.en"))
    assert problem.startswith("profile.yaml:5: stt.models[0].id: no model 'whisper-tny.en'")
    assert problem.endswith("did you mean 'whisper-tiny.en'?")


def test_default_model_of_a_section_is_checked_too(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, VOICE + "  vad_model: silero\n")
    assert problem.startswith("profile.yaml:8: voice.vad_model: no model 'silero'")


def test_two_processes_on_one_port_are_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, STT + ROUTER.replace("8103", "8101"))
    assert problem == "profile.yaml:8: router.edge.port: stt.edge has port 8101 already"


def test_port_that_others_cannot_know_is_refused(tmp_path: Path) -> None:
    assert "choose one" in problem_of(tmp_path, STT.replace("8101", "0"))


def test_url_that_leads_past_the_process_started_for_it_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, VOICE.replace("8101", "8199") + STT)
    assert problem == "profile.yaml:4: voice.stt_url: leads to port 8199, but stt listens on 8101"


def test_url_of_another_machine_is_not_ours_to_check(tmp_path: Path) -> None:
    assert profile_of(tmp_path, VOICE.replace("127.0.0.1:8101", "10.0.0.7:9000") + STT).voice is not None


def test_url_without_a_usable_port_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, VOICE.replace("8101", "99999"))
    assert problem.startswith("profile.yaml:4: voice.stt_url: no address: Port out of range")


@pytest.mark.parametrize("url", ['"http://[::1"', '"http://127.0.0.1\\0:9101"', '"http://a b"', "http://", "ftp://a"])
def test_every_address_is_checked_where_it_stands(tmp_path: Path, url: str) -> None:
    for i, name in enumerate(("stt_url", "tts_url", "llm_url"), 4):
        text = re.sub(f"{name}: .*", lambda _, name=name: f"{name}: {url}", VOICE)
        assert problem_of(tmp_path, text).startswith(f"profile.yaml:{i}: voice.{name}: ")
    text = ROUTER.replace('"http://127.0.0.1:8104"', url)
    assert problem_of(tmp_path, text).startswith("profile.yaml:7: router.models[0].workers[0].url: ")


@pytest.mark.parametrize("url", ["stun:a..b", "stun:a:0", "stun:a:65536", '"stun:a\\nb"', "stun:a:\u0663"])
def test_address_of_a_stun_server_is_checked(tmp_path: Path, url: str) -> None:
    text = VOICE + f"  webrtc:\n    ice_servers:\n    - {{url: {url}}}\n"
    assert problem_of(tmp_path, text).startswith("profile.yaml:10: voice.webrtc.ice_servers[0].url: ")


@pytest.mark.parametrize("name", ['"a\\nb"', '"a\'b\\""', "a b", "\u0431"])
def test_user_of_a_turn_server_fits_a_header(tmp_path: Path, name: str) -> None:
    server = f"{{url: 'turn:a', username: {name}, credential_file: /x}}"
    text = VOICE + f"  webrtc:\n    ice_servers:\n    - {server}\n"
    assert problem_of(tmp_path, text).startswith("profile.yaml:10: voice.webrtc.ice_servers[0].username: ")


def with_key_files(path: str) -> str:
    """A profile that names it wherever a file can be named, a line each."""
    edge = f"\n        api_key_file: {path}\n        port:"
    ice = f"  webrtc:\n    ice_servers:\n    - url: 'turn:a'\n      username: a\n      credential_file: {path}\n"
    voice = VOICE.replace("{port: 8080}", f"{edge} 8080") + f"  service_key_file: {path}\n{ice}"
    router = ROUTER.replace(
        '- {url: "http://127.0.0.1:8104"}', f"- url: http://10.0.0.7\n          api_key_file: {path}"
    )
    return voice + STT.replace("{port: 8101}", f"{edge} 8101") + router + LLM.replace("{port: 8104}", f"{edge} 8104")


@pytest.mark.parametrize("path", ["~nobodyhere/x", '"/a\\0b"', '""', '"/a\\ud800"'])
def test_every_path_is_checked_where_it_stands(tmp_path: Path, path: str) -> None:
    text = with_key_files("/x")
    lines = [i for i, line in enumerate(text.splitlines()) if line.endswith("_file: /x")]
    assert len(lines) == 6
    for i in lines:
        spoilt = text.splitlines()
        spoilt[i] = spoilt[i].replace("/x", path)
        key = spoilt[i].split(":")[0].strip()
        assert re.match(rf"profile\.yaml:{i + 1}: \S+\.{key}: ", problem_of(tmp_path, "\n".join(spoilt)))


@pytest.mark.parametrize("file", ["/dev/zero", "/dev/null", "pipe"])
def test_key_files_that_are_none_are_told_to_those_who_want_the_keys(tmp_path: Path, file: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = with_key_files(str(tmp_path / file))
    assert len(profile_of(tmp_path, text).key_files) == 6
    with pytest.raises(ConfigError) as caught:
        read_profile(tmp_path / "profile.yaml", read_catalogue(), reads_keys=True)
    problem = str(caught.value).removeprefix(f"{tmp_path}/")
    assert problem.startswith("profile.yaml:4: voice.edge.api_key_file: ")
    assert "it is no regular file" in problem


def test_stacks_with_other_ports_write_other_logs(tmp_path: Path) -> None:
    default, other = profile_of(tmp_path, VOICE), profile_of(tmp_path, VOICE.replace("8080", "9080"))
    assert log_folder(tmp_path, default) == tmp_path / "logs"
    assert log_folder(tmp_path, other) == tmp_path / "logs-9080"
    assert log_folder(tmp_path, read_profile(DEFAULT_PROFILE, read_catalogue())) == tmp_path / "logs"


def test_model_that_the_router_does_not_serve_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, VOICE + ROUTER.replace("id: smollm2-135m-instruct", "id: other"))
    assert problem.startswith("profile.yaml:7: voice.llm_model: the router has no 'smollm2-135m-instruct'")


def test_worker_that_serves_another_model_is_refused(tmp_path: Path) -> None:
    problem = problem_of(tmp_path, ROUTER + LLM.replace("id: smollm2", "id: smollm3"))
    assert problem.startswith("profile.yaml:7: router.models[0].workers[0].url: the worker there serves 'smollm3")


def test_profile_without_a_section_is_refused(tmp_path: Path) -> None:
    assert "nothing to start" in problem_of(tmp_path, "{}")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("deploy/profiles/cpu.yml", "did you mean .*profiles/cpu.yaml"),
        ("cpu", "did you mean .*profiles/cpu.yaml"),
        ("mine.yml", "did you mean .*mine.yaml"),
        ("qqqqqqqq", "profiles that are there: .*mine.yaml, .*cpu.yaml"),
        ("a" * 300 + "/zzzzzzzz", "profiles that are there: .*cpu.yaml"),
        ("no/such/folder/zzzzzzzz", "profiles that are there: .*cpu.yaml"),
    ],
)
def test_the_nearest_profile_is_named(tmp_path: Path, wrong: str, hint: str) -> None:
    (tmp_path / "mine.yaml").touch()
    assert re.match(hint, nearest_profile(tmp_path / wrong))
