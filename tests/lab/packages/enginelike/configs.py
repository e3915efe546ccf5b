"""Registers a config class of its own, so that an older ``transformers`` can read the model."""

from transformers import AutoConfig, PretrainedConfig


class EnginelikeConfig(PretrainedConfig):
    model_type = "qwen3_5_text"


AutoConfig.register("qwen3_5_text", EnginelikeConfig)
