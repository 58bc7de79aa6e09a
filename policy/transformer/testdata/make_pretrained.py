#!/usr/bin/env python3
"""Writes pretrained/: tiny random models of each family as transformers saves them, an adapter as PEFT saves it, and the
logits they compute with them.

Made with torch 2.15.0, transformers 5.24.0 and peft 0.21.2 (pip install torch transformers peft): python3 make_pretrained.py
Weights are saved in the types that releases use; logits come from the saved weights in float64.
"""
import json
import os
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pretrained")
SHAPE = dict(vocab_size=48, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, initializer_range=0.3, rms_norm_eps=1e-5)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
MODELS = {
    "qwen2": (Qwen2Config(**SHAPE, tie_word_embeddings=True), torch.bfloat16, "1GB"),
    "qwen3": (Qwen3Config(**SHAPE, head_dim=10, tie_word_embeddings=False), torch.float16, "1GB"),
    "llama": (LlamaConfig(**SHAPE, head_dim=8, tie_word_embeddings=False, rope_parameters=LLAMA3), torch.float32, "30KB"),
    "smollm": (LlamaConfig(**SHAPE, tie_word_embeddings=True), torch.bfloat16, "1GB"),
}
IDS = [(7 * i * i + 3 * i + 5) % 48 for i in range(70)]  # past the context of the scaled model's first training


def adapter(base, name):
    """Saves an adapter whose B is not 0, and returns the logits with it."""
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(model, LoraConfig(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
                                             task_type="CAUSAL_LM"))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "lora_B" in n:
                p.normal_(0, 0.3)
    model.save_pretrained(name)
    os.remove(os.path.join(name, "README.md"))
    loaded = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float64, attn_implementation="eager")
    loaded = PeftModel.from_pretrained(loaded, name).double()
    with torch.no_grad():
        return [[round(x, 6) for x in row] for row in loaded(torch.tensor([IDS])).logits[0].tolist()[::23]]


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    os.makedirs(HERE)
    os.chdir(HERE)  # so that no path of this machine is saved
    values = {"ids": IDS, "logits": {}}
    for name, (config, dtype, shard) in MODELS.items():
        torch.manual_seed(sum(map(ord, name)))
        model = AutoModelForCausalLM.from_config(config).to(dtype)
        with torch.no_grad():
            for p in model.parameters():
                if p.dim() == 1:  # norms and biases begin as ones and zeros
                    p.add_(0.2 * torch.randn_like(p))
        model.save_pretrained(name, max_shard_size=shard)
        for extra in set(os.listdir(name)) - {"config.json"}:
            if "safetensors" not in extra:
                os.remove(os.path.join(name, extra))
        loaded = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float64, attn_implementation="eager")
        with torch.no_grad():
            logits = loaded(torch.tensor([IDS])).logits[0]
        values["logits"][name] = [[round(x, 6) for x in row] for row in logits.tolist()[::23]]
    values["adapted"] = adapter("qwen2", "qwen2-lora")
    with open("values.json", "w") as f:
        json.dump(values, f)
        f.write("\n")


main()
