#!/usr/bin/env python3
"""Writes torch_values.json: loss and gradients of a tiny grouped-query model, computed by PyTorch in float64.

Run it with any PyTorch (made with Debian's python3-torch 1.13): python3 make_torch_values.py
Weights are given by a formula, so that only results need to be stored. The layout is that of Hugging Face's Qwen2.
"""
import json
import math
import os

import torch

torch.set_default_dtype(torch.float64)
CONFIG = dict(vocab=11, width=8, layers=2, heads=4, kv_heads=2, head_dim=6, hidden=10, context=16, rope_base=10000.0,
              norm_eps=1e-6, tied=False, bias=True)
IDS = [3, 7, 1, 1, 10, 0, 5, 9, 2]
WEIGHTS = [0, 0.5, 0, 1, 0.25, 0, 0.75, 1, 0.1]
ADVANTAGES = [0, 1.5, 0, -0.7, 0.3, 0, -1.2, 0.9, 2]
SAMPLING = [0, -2.1, 0, -2.6, -1.9, 0, -2.4, -2.5, -2.2]
REFERENCE = [0, -2.3, 0, -2.2, -2.4, 0, -2.6, -2.1, -2.5]
KL, ENTROPY = 0.2, 0.05


def shapes():
    c = CONFIG
    d, q, kv, f = c["width"], c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"], c["hidden"]
    yield "model.embed_tokens.weight", (c["vocab"], d)
    for i in range(c["layers"]):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (d,)
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            yield at + f"self_attn.{name}_proj.weight", (rows, d)
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            yield at + f"self_attn.{name}_proj.bias", (rows,)
        yield at + "self_attn.o_proj.weight", (d, q)
        yield at + "post_attention_layernorm.weight", (d,)
        yield at + "mlp.gate_proj.weight", (f, d)
        yield at + "mlp.up_proj.weight", (f, d)
        yield at + "mlp.down_proj.weight", (d, f)
    yield "model.norm.weight", (d,)
    yield "lm_head.weight", (c["vocab"], d)


def parameter(number, shape):
    """Element i of tensor number n is 0.4·sin(1.7·n + 0.9·i), plus 1 in vectors whose name is not a bias."""
    n = math.prod(shape)
    values = 0.4 * torch.sin(1.7 * number + 0.9 * torch.arange(n))
    return values.reshape(shape)


def rotate(x):
    """x [T, heads, dim], half-split."""
    half = x.shape[-1] // 2
    frequency = CONFIG["rope_base"] ** (-2 * torch.arange(half) / x.shape[-1])
    angle = torch.arange(x.shape[0])[:, None] * frequency
    cos, sin = torch.cat([angle.cos()] * 2, -1)[:, None], torch.cat([angle.sin()] * 2, -1)[:, None]
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + CONFIG["norm_eps"]) * w


def logits(p):
    c = CONFIG
    x = p["model.embed_tokens.weight"][IDS]
    for i in range(c["layers"]):
        at = f"model.layers.{i}."
        h = norm(x, p[at + "input_layernorm.weight"])
        q, k, v = (
            torch.nn.functional.linear(h, p[at + f"self_attn.{n}_proj.weight"], p[at + f"self_attn.{n}_proj.bias"])
            .reshape(len(IDS), -1, c["head_dim"]) for n in "qkv")
        q, k = rotate(q), rotate(k)
        k, v = (z.repeat_interleave(c["heads"] // c["kv_heads"], 1) for z in (k, v))
        scores = torch.einsum("thd,shd->hts", q, k) / math.sqrt(c["head_dim"])
        scores = scores.masked_fill(torch.ones(len(IDS), len(IDS), dtype=bool).triu(1), -math.inf)
        mixed = torch.einsum("hts,shd->thd", scores.softmax(-1), v).reshape(len(IDS), -1)
        x = x + mixed @ p[at + "self_attn.o_proj.weight"].T
        h = norm(x, p[at + "post_attention_layernorm.weight"])
        act = torch.nn.functional.silu(h @ p[at + "mlp.gate_proj.weight"].T) * (h @ p[at + "mlp.up_proj.weight"].T)
        x = x + act @ p[at + "mlp.down_proj.weight"].T
    return norm(x, p["model.norm.weight"]) @ p["lm_head.weight"].T


def losses(p):
    """Cross-entropy, and the policy gradient with KL (k3) and an entropy bonus, each Σ weight·loss."""
    logp = logits(p).log_softmax(-1)[:-1]
    chosen = logp.gather(1, torch.tensor(IDS[1:])[:, None])[:, 0]
    w, a, s, r = (torch.tensor(v[1:]) for v in (WEIGHTS, ADVANTAGES, SAMPLING, REFERENCE))
    entropy = -(logp.exp() * logp).sum(-1)
    policy = -(chosen - s).exp() * a + KL * ((r - chosen).exp() - (r - chosen) - 1) - ENTROPY * entropy
    return {"cross_entropy": -(w * chosen).sum(), "policy": (w * policy).sum()}, chosen


def main():
    out = {"config": CONFIG, "ids": IDS, "weights": WEIGHTS, "advantages": ADVANTAGES, "sampling": SAMPLING,
           "reference": REFERENCE, "kl": KL, "entropy": ENTROPY, "torch": torch.__version__, "losses": {}}
    for name in ("cross_entropy", "policy"):
        p = {}
        for number, (tensor, shape) in enumerate(shapes()):
            p[tensor] = parameter(number, shape) + (1 if len(shape) == 1 and not tensor.endswith("bias") else 0)
            p[tensor].requires_grad_()
        found, chosen = losses(p)
        found[name].backward()
        out["log_probs"] = [round(v, 9) for v in chosen.tolist()]
        out["losses"][name] = {
            "loss": found[name].item(),
            "gradients": {t: [float(f"{g:.7g}") for g in v.grad.flatten().tolist()] for t, v in p.items()}}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_values.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
