"""Secrets and paths: what is taken out, what is left alone, and that nothing slips through."""

from __future__ import annotations

import base64
import json
import random
import shlex
import urllib.parse
from pathlib import Path

import pytest

from agent.events import ApprovalAnswered, CallSampled, NoteAdded
from agent.redact import WITHHELD, Redactor, secrets_of
from tools.command import Command, Ending, Result

SECRET = "c4n-ary/v'al\"ue+ü=="  # noqa: S105 - a canary
PATHS = {"home": "/home/u", "env": "/home/u/envs/a", "goal": "/srv/job"}
DIGESTS = (
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "EOS_TOKEN=<|im_end|> PAD_TOKEN=151643 max_tokens=32768",
    "sk-learn-is-not-a-token-at-all-really",
    "argument --api-key: expected one argument; usage: serve [--api-key API_KEY]",
    "http://localhost:8000/v1/models and user@host:/srv/x",
    "Bearer authentication is needed",
)


@pytest.fixture
def redactor() -> Redactor:
    return Redactor({"HF_TOKEN": SECRET, "SHORT": "root", "PLAIN": "hunter22"}, PATHS)


def forms(secret: str) -> dict[str, str]:
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    longer = base64.b64encode(f'{{"auths": "{secret}", "more": 1}}'.encode()).decode()
    half = len(secret) // 2
    return {
        "plain": secret,
        "inside": f"xx{secret}yy",
        "url": urllib.parse.quote(secret),
        "url_all": urllib.parse.quote(secret, safe=""),
        "url_form": urllib.parse.quote_plus(secret),
        "json": json.dumps({"token": secret}),
        "json_utf8": json.dumps({"token": secret}, ensure_ascii=False),
        "json_twice": json.dumps(json.dumps({"token": secret})),
        "repr": repr([secret]),
        "shell": shlex.join(["echo", secret]),
        "base64": base64.b64encode(secret.encode()).decode(),
        "base64_url": base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        "base64_lines": base64.encodebytes(secret.encode()).decode(),
        "basic": f"Authorization: Basic {basic}",
        "base64_longer": longer,
        "wrapped": f"{secret[:half]}\n{secret[half:]}",
        "wrapped_crlf": f"{secret[:half]}\r\n{secret[half:]}",
    }


def traces(secret: str) -> list[str]:
    """What must not be found: the secret, and base64 of its inner part at any alignment."""
    raw = secret.encode()
    cores = [base64.b64encode(b"\0" * shift + raw).decode()[4:-4] for shift in range(3)]
    return [secret, urllib.parse.quote(secret, safe=""), *cores]


@pytest.mark.parametrize("form", forms(SECRET))
@pytest.mark.parametrize("secret", [SECRET, "hunter22", "0123456789abcdef0123456789abcdef01234567"])
def test_registered_secret_in_every_form(form: str, secret: str) -> None:
    redactor = Redactor({"HF_TOKEN": secret}, {})
    text = f"before {forms(secret)[form]} after"
    clean = redactor.redact(text)
    assert not [trace for trace in traces(secret) if trace in clean.replace("\n", "")]
    assert "«secret:" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert redactor.redact(clean) == clean


SHAPES = [
    ("token hf_AbCdEfGhIjKlMnOpQrStUvWx", "hf_AbCdEfGhIjKlMnOpQrStUvWx"),
    ("sk-proj-abc123DEF456ghi789jkl", "sk-proj-abc123DEF456ghi789jkl"),
    ("ghp_0123456789abcdefABCDEF0123456789abcd", "ghp_0123456789abcdefABCDEF0123456789abcd"),
    ("github_pat_11ABCDEFG0123456789_abcdef", "github_pat_11ABCDEFG0123456789_abcdef"),
    ("xoxb-123456789012-abcdefGHIJ", "xoxb-123456789012-abcdefGHIJ"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
    ("authorization: bearer canarycanarycanarycanary", "canarycanarycanarycanary"),
    ("git clone https://user:tok-1@git.example/x.git", "tok-1"),
    ("redis://:p4ss@db:6379/0", "p4ss"),
    ("https://canaryuser:pa:s@s@h/x", "pa:s@s"),
    ('{"auths":{"r":{"auth":"dXNlcjpjYW5hcnk="}}}', "dXNlcjpjYW5hcnk="),
    ('"{\\"auth\\": \\"dXNlcjpjYW5hcnk=\\"}"', "dXNlcjpjYW5hcnk="),
    ("Authorization: Basic dXNlcjpjYW5hcnk=", "dXNlcjpjYW5hcnk="),
    ("HF_TOKEN=canary99 serve", "canary99"),
    ('"Env": ["OPENAI_API_KEY=canary99"]', "canary99"),
    ('WANDB_API_KEY: "canary99"', "canary99"),
    ("vllm serve m --api-key canary99 --port 1", "canary99"),
    ("--hf-token=canary99", "canary99"),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza\nc2gt\n-----END OPENSSH PRIVATE KEY-----",
        "b3BlbnNza",
    ),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIcanary\n(cut off)", "MIIcanary"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4", "eyJzdWIiOiIxMjM0In0"),
]


@pytest.mark.parametrize(("text", "secret"), SHAPES, ids=[text[:24] for text, _ in SHAPES])
def test_unknown_secret_by_its_shape(text: str, secret: str) -> None:
    redactor = Redactor({}, {})
    clean = redactor.redact(f"a {text} b")
    assert secret not in clean
    assert "«secret:shape-1»" in clean
    assert clean.startswith("a ")
    assert redactor.redact(clean) == clean


def test_same_value_same_placeholder(redactor: Redactor) -> None:
    first = redactor.redact("hf_AbCdEfGhIjKlMnOpQrStUvWx and ghp_0123456789abcdefABCDEF")
    again = redactor.redact("ghp_0123456789abcdefABCDEF, hf_AbCdEfGhIjKlMnOpQrStUvWx")
    assert first == "«secret:shape-1» and «secret:shape-2»"
    assert again == "«secret:shape-2», «secret:shape-1»"
    assert redactor.names == ("secret:shape-1", "secret:shape-2")


def test_value_of_an_option_in_an_argument_vector(redactor: Redactor) -> None:
    argv = redactor.redact(["serve", "--api-key", "canary99", "--port", "8000"])
    assert argv == ["serve", "--api-key", "«secret:shape-1»", "--port", "8000"]


@pytest.mark.parametrize("text", DIGESTS)
def test_left_alone(redactor: Redactor, text: str) -> None:
    assert redactor.redact(text) == text
    assert redactor.names == ()


def test_short_values_are_left_alone(redactor: Redactor) -> None:
    assert redactor.redact("root 1 true") == "root 1 true"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/u", "«home»"),
        ("/home/u/", "«home»/"),
        ("/home/u/envs/a/bin/python", "«env»/bin/python"),
        ("/home/u/envs/abc", "«home»/envs/abc"),
        ("/home/user2/x /data/home/u", "/home/user2/x /data/home/u"),
        ("No such file: /home/u.", "No such file: «home»."),
        ("/home/u.bak /home/u-old", "/home/u.bak /home/u-old"),
        ("P=/home/u:/srv/job", "P=«home»:«goal»"),
        ("file:///home/u/x", "file://«home»/x"),
        ("-I/home/u/include", "-I«home»/include"),
        (r"'a\n/home/u/x'", r"'a\n«home»/x'"),
        ("\x1b[0m/home/u/x", "\x1b[0m«home»/x"),
        ('["/home/u"]', '["«home»"]'),
    ],
)
def test_paths(redactor: Redactor, text: str, clean: str) -> None:
    assert redactor.redact(text) == clean
    assert redactor.redact(clean) == clean
    assert redactor.restore(clean) == text


def test_root_and_relative_paths_name_nothing() -> None:
    assert Redactor({}, {"home": "/", "env": "venv"}).redact("/x venv") == "/x venv"
    with pytest.raises(ValueError, match="cannot name a path"):
        Redactor({}, {"Bad Name": "/x"})


def test_redacting_twice_changes_nothing(redactor: Redactor) -> None:
    random_ = random.Random(7)  # noqa: S311 - the same texts each time
    pieces = [
        *forms(SECRET).values(),
        *(text for text, _ in SHAPES),
        *PATHS.values(),
        *DIGESTS,
        *"«»:/@-_.=\"'\\ \n,",
        *("«home»", "«secret:shape-3»", "«secret:OTHER»", "«withheld»", "«env", "secret:HF_TOKEN»"),
        *("Bearer ", "://", "--token ", "API_KEY=", "key", "\x1b[31m", "ü", "漢字", "\udcff"),
    ]
    changed = 0
    for _ in range(3000):
        text = "".join(random_.choices(pieces, k=random_.randint(1, 8)))
        clean = redactor.redact(text)
        assert redactor.redact(clean) == clean, text
        assert SECRET not in clean
        assert "hunter22" not in clean
        changed += clean != text
    assert changed > 2000


def test_a_host_cannot_hide_a_secret_in_a_placeholder(redactor: Redactor) -> None:
    for text in ("«secret:hunter22»", "«hunter22»", "«secret:shape-1hunter22»"):
        assert "hunter22" not in redactor.redact(text)


def test_whatever_goes_wrong_withholds_the_text(redactor: Redactor) -> None:
    class Hostile(str):
        def lower(self) -> str:
            raise RuntimeError("a defect")

    clean = redactor.redact({"a": Hostile("canary ://"), "b": ["fine"]})
    assert clean == {"a": WITHHELD, "b": ["fine"]}


def test_what_is_no_json_is_withheld(redactor: Redactor) -> None:
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    assert redactor.redact([Path("/home/u"), b"hunter22"]) == [WITHHELD, WITHHELD]
    assert WITHHELD in json.dumps(redactor.redact(deep), ensure_ascii=False)
    assert redactor.redact("a\udcffb") == "a\\udcffb"


def test_keys_and_values_at_any_depth(redactor: Redactor) -> None:
    data = {"hunter22": [{"/home/u": ("x hunter22", 1, None, True, 2.5)}]}
    assert redactor.redact(data) == {
        "«secret:PLAIN»": [{"«home»": ("x «secret:PLAIN»", 1, None, True, 2.5)}]
    }


def test_events_and_the_results_in_them(redactor: Redactor) -> None:
    result = Result(Ending.EXITED, code=0, stdout="hunter22", survivors=("1 /home/u/x",))
    event = CallSampled(call_id="c1", n=1, argv=("/home/u/x",), result=result)
    clean = redactor.redact(event)
    assert clean.result.stdout == "«secret:PLAIN»"
    assert clean.result.survivors == ("1 «home»/x",)
    assert clean.argv == ("«home»/x",)
    assert clean.result.ending is Ending.EXITED
    assert event.result.stdout == "hunter22"


def test_words_from_a_fixed_list_are_no_secrets() -> None:
    redactor = Redactor({"DB_PASSWORD": "policy", "API_KEY": "exited"}, {})
    answer = redactor.redact(ApprovalAnswered(approval_id="a1", answer="policy", by="policy"))
    assert (answer.by, answer.answer) == ("policy", "«secret:DB_PASSWORD»")


def test_recordings_with_different_secrets_read_alike() -> None:
    texts = []
    for secret in ("canary-one-1", "other-canary-22"):
        redactor = Redactor({"HF_TOKEN": secret}, {"home": f"/home/{secret[:3]}"})
        event = NoteAdded(
            text=f"{secret} https://u:{secret}x@h /home/{secret[:3]}/m sk-1{secret}234"
        )
        texts.append(redactor.redact(event).text)
    assert texts[0] == texts[1]


def test_restore_gives_secrets_only_when_asked(redactor: Redactor) -> None:
    text = redactor.redact("/home/u/envs/a/bin/python hunter22")
    assert text == "«env»/bin/python «secret:PLAIN»"
    assert redactor.restore(text) == "/home/u/envs/a/bin/python «secret:PLAIN»"
    assert redactor.restore(text, secrets=True) == "/home/u/envs/a/bin/python hunter22"
    assert redactor.restore("«secret:OTHER» «nope»", secrets=True) == "«secret:OTHER» «nope»"


def test_restore_works_on_commands(redactor: Redactor) -> None:
    command = Command.of("«env»/bin/python", env={"P": "«home»/x"}, stdin="«goal»")
    real = redactor.restore(command)
    assert real == Command.of("/home/u/envs/a/bin/python", env={"P": "/home/u/x"}, stdin="/srv/job")


def test_the_private_part_holds_paths_only(redactor: Redactor) -> None:
    private = redactor.private()
    assert private == PATHS
    again = Redactor.from_private(private, {"HF_TOKEN": SECRET})
    assert again.restore(redactor.redact("/srv/job/x")) == "/srv/job/x"


def test_numbers_of_an_earlier_part_are_not_used_twice(redactor: Redactor) -> None:
    redactor.note('{"text":"«secret:shape-7» «secret:shape-2»"}')
    assert redactor.redact("https://u:pw@h") == "https://u:«secret:shape-8»@h"


def test_secrets_of_an_environment(tmp_path: Path) -> None:
    found = secrets_of(
        {
            "HF_TOKEN": "hf_abcdef",
            "OPENAI_API_KEY": "sk-abcdef",
            "PGPASSWORD": "abcdef",
            "AWS_SECRET_ACCESS_KEY": "/abc/def+ghi",
            "my_credentials": "abcdef",
            "DB_PASS": "abcdef",
            "SSH_KEY": str(tmp_path),
            "X_TOKEN": "123456",
            "Y_TOKEN": "true",
            "Z_TOKEN": "abc",
            "TOKENIZERS_PARALLELISM": "abcdef",
            "MONKEY": "banana",
            "XDG_SESSION_ID": "abcdef",
            "COMPASS": "north-east",
        }
    )
    names = "HF_TOKEN OPENAI_API_KEY PGPASSWORD AWS_SECRET_ACCESS_KEY my_credentials DB_PASS"
    assert list(found) == names.split()
