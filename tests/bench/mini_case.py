"""One run of N steps of mini-swe-agent, in its own environment, against the same endpoint.

``python -m tests.bench.mini_case STEPS FOLDER PORT`` prints its figures as one JSON line. It is its
own agent, its own model class on litellm, its own configuration and its trajectory file, as its
command line puts them together; only commands are not run: a piece of a log comes back.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench.target import PIECES, log_lines

TASK = "Serve the model in /srv/models/tiny with the environment in /srv/env."


def mini(steps: int, folder: Path, port: int) -> dict[str, float]:
    """Drive a run.

    Raises:
        RuntimeError: it did not take all its steps.
    """
    os.environ |= {
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(folder),
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    local: Any = import_module("minisweagent.environments.local")
    config = import_module("minisweagent.config").get_config_from_spec("mini.yaml")
    model = import_module("minisweagent.models").get_model("openai/bench", _model(config, port))
    pieces = ["\n".join(log_lines(seed)) for seed in range(PIECES)]
    clocks: list[float] = []

    class Canned(local.LocalEnvironment):  # type: ignore[misc]
        def execute(self, action: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
            clocks.append(time.process_time())
            done = str(action["command"]).removeprefix("echo ")
            text = done if done.startswith("COMPLETE_TASK") else pieces[len(clocks) % PIECES]
            output = {"output": text, "returncode": 0, "exception_info": ""}
            self._check_finished(output)
            return output

    given = {key: config["agent"][key] for key in ("system_template", "instance_template")}
    agent = import_module("minisweagent.agents.default").DefaultAgent(
        model,
        Canned(**config["environment"]),
        **given,
        cost_limit=0,
        output_path=folder / "last_mini_run.traj.json",
    )
    ended = agent.run(TASK)["exit_status"]
    if ended != "Submitted" or len(clocks) != steps + 2:
        raise RuntimeError(f"a run of {steps} steps ended {ended} after {len(clocks)}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1e-6 if sys.platform == "darwin" else 1e-3
    return {"cpu_ms": 1e3 * (clocks[-1] - clocks[1]) / steps, "rss_mb": most * unit}


def _model(config: dict[str, Any], port: int) -> dict[str, Any]:
    given: dict[str, Any] = dict(config["model"])
    given["model_kwargs"] |= {"api_base": f"http://127.0.0.1:{port}/v1", "api_key": "none"}
    return given


if __name__ == "__main__":
    measured = mini(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(measured) + "\n")
