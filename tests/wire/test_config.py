from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.config import MAX_PROFILE_BYTES, ConfigError, EdgeConfig, is_loopback, read, read_key


@dataclass(frozen=True)
class Section:
    edge: EdgeConfig = field(default_factory=lambda: EdgeConfig(port=1))
    urls: tuple[str, ...] = ()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return path


def test_a_section_is_parsed(tmp_path: Path):
    path = write(tmp_path, "a:\n  edge: {port: 8080}\n  urls: [x, y]\nb: {}\n")

    assert read(path).parse(Section, "a") == Section(EdgeConfig(8080), ("x", "y"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a:\n  edge:\n    port: 80\n    prot: 1\n", ":4: a.edge.prot: unknown key; did you mean 'port'?"),
        ("a:\n  edge: {}\n", ":2: a.edge.port: missing"),
        ("a:\n  urls:\n  - x\n  - 5\n", ":4: a.urls[1]: expected str, got int 5"),
        ("a:\n  edge: {port: 99999}\n", ":2: a.edge: port must be 0 to 65535"),
        ("a: {}\na: {}\n", ":2: not YAML: 'a' is given twice"),
        ("a: [\n", "not YAML"),
        ("a: {edge: {port: 2026-13-45}}\n", "not YAML: month must be in 1..12"),
        ("a: {edge: {port: 1" + "0" * 5000 + "}}\n", "not YAML"),
        ("- 1\n", ": expected a mapping at the top"),
        ("b: {}\n", ": no section 'a'"),
        ("a:\n  urls: &u [x]\n  edge: *u\n", ":3: a.edge: YAML aliases are not taken"),
        ("a: &a\n  edge: *a\n", ":2: a.edge: YAML aliases are not taken"),
        ("a:\n  urls: !!int ''\n", ":2: a.urls: YAML tags are not taken"),
        ("a: !!timestamp x\n", ":1: a: YAML tags are not taken"),
        ("a:\n  edge: {host: 'a..b', port: 1}\n", ":2: a.edge.host: neither an IP address nor a name: 'a..b'"),
        ("a:\n  edge:\n    port: 1\n    api_key_file: ~nobodyhere/x\n", ":4: a.edge.api_key_file: there is no home"),
        ('a:\n  edge: {port: 1, api_key_file: "/a\\nb"}\n', ":2: a.edge.api_key_file: expected a path"),
        ('a:\n  urls: ["x\\0"]\n', ":2: a.urls[0]: holds a character that cannot be written"),
        ('a:\n  urls: ["\\ud800"]\n', ":2: a.urls[0]: holds a character that cannot be written"),
        ('"a\\n": {}\n', ":1: what stands in line 1 is no key"),
        ("? [a]\n: {}\n", ":1: what stands in line 1 is no key"),
        ("a: \x01\n", ": not YAML: special characters are not allowed: U+0001"),
        ("a: " + 2000 * "[", ": not YAML: nested too deeply"),
    ],
)
def test_errors_name_file_line_and_path(tmp_path: Path, text: str, error: str):
    path = write(tmp_path, text)

    with pytest.raises(ConfigError) as wrong:
        read(path).parse(Section, "a")
    assert str(wrong.value).startswith(str(path))
    assert error in str(wrong.value)
    assert len(str(wrong.value).splitlines()) == 1


def test_a_missing_or_binary_file_is_one_clear_error(tmp_path: Path):
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.yaml", binary):
        with pytest.raises(ConfigError, match=r"cannot read|not YAML"):
            read(path)


def test_a_few_lines_that_stand_for_millions_are_refused_at_once(tmp_path: Path):
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 8)]
    path = write(tmp_path, "\n".join(["a0: &a0 [x]", *levels]))
    with pytest.raises(ConfigError, match=r":2: a1\[0\]: YAML aliases are not taken"):
        read(path)


def test_a_profile_without_end_is_not_read(tmp_path: Path):
    path = write(tmp_path, "a: {}\n" + "# so it goes on\n" * MAX_PROFILE_BYTES)
    with pytest.raises(ConfigError, match=f"more than {MAX_PROFILE_BYTES} bytes"):
        read(path)


@given(st.text(st.sampled_from("ab: \n-[]{}&*!'\"#|>~?,1.%@\\0x\t\0\ud800"), max_size=40))
def test_any_text_is_a_document_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    problem = ""
    try:
        read(path)
    except ConfigError as error:
        problem = str(error)
    assert len(problem.splitlines()) <= 1


def test_leaving_loopback_demands_a_key(tmp_path: Path):
    with pytest.raises(ValueError, match="api_key_file"):
        EdgeConfig(port=1, host="0.0.0.0")
    EdgeConfig(port=1, host="0.0.0.0", api_key_file=tmp_path / "key")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.5.0.1", True), ("::1", True), ("localhost", True), ("::", False), ("voice", False)],
)
def test_loopback_is_recognised(host: str, loopback: bool):
    assert is_loopback(host) is loopback


def test_a_key_is_read_without_its_newline_and_must_be_private(tmp_path: Path):
    path = tmp_path / "key"
    path.write_text("0123456789abcdef\n")
    path.chmod(0o600)
    assert read_key(path) == "0123456789abcdef"

    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_key(path)


def test_a_short_or_missing_key_is_refused(tmp_path: Path):
    path = tmp_path / "key"
    with pytest.raises(ConfigError, match="cannot read"):
        read_key(path)
    path.write_text("short")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="at least 16"):
        read_key(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0123456789abcdef\nx", "one line without control characters"),
        ("0123456789abcdef\x7fx", "one line without control characters"),
        ("0123456789abcdef\N{EN DASH}x", "ASCII characters only"),
        ("0123456789abcdef" * 1000, "more than 4096 bytes"),
    ],
)
def test_a_key_that_no_header_can_carry_is_refused(tmp_path: Path, text: str, problem: str):
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=problem):
        read_key(path)
