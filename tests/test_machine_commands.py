"""What of a process's command is shown: what runs and by which model and port, never a secret."""

from __future__ import annotations

import pytest

from tools.machine_commands import MOST_SHOWN, plain_words

SHOWN = {
    "/opt/env/bin/python3 /opt/env/bin/vllm serve org/M-8B --api-key sk-1 --port 8000": (
        "/opt/env/bin/python3 /opt/env/bin/vllm serve org/M-8B … --port 8000"
    ),
    "vllm serve --port=8000 m": "vllm serve --port=8000 …",
    "python3 -u -m sglang.launch_server --model-path /m/x --tp 8 --host ::": (
        "python3 -u -m sglang.launch_server --model-path /m/x --tp 8 …"
    ),
    "llama-server -m /m/q.gguf --ctx-size 4096": "llama-server -m /m/q.gguf --ctx-size 4096",
    "VLLM::EngineCore": "VLLM::EngineCore",
    "[Insufficient Permissions]": "[Insufficient Permissions]",
    "python train.py --tokenizer qwen": "python train.py --tokenizer qwen",
    "java -Xmx4g -jar a.jar": "java … -jar a.jar",
    "python -c print(1)": "python …",
    "": "",
}
SECRET = "hunter2abc"  # noqa: S105 - an example
HIDES = (
    "jupyter --ServerApp.token={}",
    "x --secret-key {}",
    "x --access-key={}",
    "redis-server --requirepass {}",
    "rclone serve --sftp-pass {}",
    "sshpass -p {} ssh h",
    "mysql -u root -p{}",
    "java -Dx.password={} -jar a.jar",
    'x {{"api_key":"{}"}}',
    "curl https://u/?api_key={}",
    "git clone https://u:p@ss/{}@h/x",
    "git clone https://u:{}@h/x",
    "https://u:{}@h/x",
    "HF_TOKEN={} python -m x",
    "x --password 'a {}' z",
    "sh -c {}",
    "bash -s {}",
    "bash -c curl -H token:{}",
    "python - {}",
    "python -m x {}",
    "python x.py {}",
    "vllm serve m {}",
    "vllm serve --api-key {}",
    "x serve {}",
    "x --port {}",
    "x --port={}",
    "x --model https://u:{}@h/m",
    "x --model s3://b/m?key={}",
    "x -m {}",
)


@pytest.mark.parametrize("said", SHOWN)
def test_what_runs_is_shown(said: str) -> None:
    assert plain_words(said) == SHOWN[said]


@pytest.mark.parametrize("said", HIDES)
def test_no_secret_is_shown(said: str) -> None:
    command = said.format(SECRET)
    assert SECRET in command
    assert SECRET not in plain_words(command)


def test_it_is_short() -> None:
    long = f"python {'/x' * 48} --model {'y' * 90}"
    assert len(plain_words(long)) == MOST_SHOWN
    assert plain_words("x " + "a " * 10_000) == "x …"
