#!/usr/bin/env python3
"""Writes a model of random weights in bfloat16, in the shape of a released one: to see what its size costs, not what it says.

    make_random.py qwen2.5-0.5b DIR [TOKENIZER]    # about 1 GB; TOKENIZER: a folder with its tokenizer.json, copied

Needs numpy. Weights are N(0, 0.02), norms 1, biases 0.
"""
import json
import os
import shutil
import struct
import sys

import numpy

SHAPES = {
    "qwen2.5-0.5b": dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                         num_key_value_heads=2, tie_word_embeddings=True),
    "qwen2.5-1.5b": dict(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
                         num_key_value_heads=2, tie_word_embeddings=True),
}
COMMON = dict(model_type="qwen2", architectures=["Qwen2ForCausalLM"], torch_dtype="bfloat16", hidden_act="silu", rms_norm_eps=1e-6,
              rope_theta=1e6, max_position_embeddings=32768)


def tensors(c):
    d, f = c["hidden_size"], c["intermediate_size"]
    kv = d // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", (c["vocab_size"], d)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name, n in ("q", d), ("k", kv), ("v", kv):
            yield f"{at}self_attn.{name}_proj.weight", (n, d)
            yield f"{at}self_attn.{name}_proj.bias", (n,)
        yield at + "self_attn.o_proj.weight", (d, d)
        yield at + "mlp.gate_proj.weight", (f, d)
        yield at + "mlp.up_proj.weight", (f, d)
        yield at + "mlp.down_proj.weight", (d, f)
        yield at + "input_layernorm.weight", (d,)
        yield at + "post_attention_layernorm.weight", (d,)
    yield "model.norm.weight", (d,)


def main(shape, folder, tokenizer=None):
    config = SHAPES[shape]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config | COMMON, f, indent=2)
    if tokenizer:
        shutil.copy(os.path.join(tokenizer, "tokenizer.json"), folder)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dims in tensors(config):
        size = 2 * int(numpy.prod(dims))
        header[name] = {"dtype": "BF16", "shape": dims, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = numpy.random.default_rng(1)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, dims in tensors(config):
            if len(dims) == 1:
                values = numpy.full(dims, 0 if name.endswith("bias") else 1, numpy.float32)
                f.write((values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())
                continue
            for first in range(0, dims[0], 4096):
                values = random.standard_normal((min(4096, dims[0] - first), dims[1]), numpy.float32) * numpy.float32(0.02)
                f.write((values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
