#!/usr/bin/env python3
"""Times PyTorch on what `skillmaster bench engine` times: the same decoder, trained and sampled, as fast as PyTorch can.

Prints one JSON object a line: float32 and, where the processor has instructions for it, bfloat16 (autocast) with one thread, with all
threads and with as many one-thread processes as cores (in training their gradients would still have to be exchanged; in sampling each has
all the sequences). Attention is PyTorch's fused one, AdamW its fused one, sampling keeps a preallocated KV cache.

step_bytes is how much resident memory grew while training, at its highest, after the import and the model; resident_bytes the whole.

Debian's package: apt-get install python3-torch; the newest: pip install torch. The options are those of `bench engine`:
    bench_torch.py --width 256 --hidden 1024 --length 512 --batch 8 --sequences 16 --vocab 4096
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

# What slows PyTorch on some machines is undone before it is loaded.
for name in [k for k in os.environ if k.startswith("OPENBLAS_")]:
    del os.environ[name]
FLAGS = set(next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "").split())
AVX512, AVX2 = {"avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"} <= FLAGS, {"avx2", "fma"} <= FLAGS
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512" if AVX512 else "avx2" if AVX2 else "default")
if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # read by the allocator at start: begin again
    os.environ.update(MALLOC_TRIM_THRESHOLD_=str(1 << 32), MALLOC_MMAP_THRESHOLD_=str(1 << 32), MALLOC_TOP_PAD_=str(1 << 28))
    os.execv(sys.executable, [sys.executable] + sys.argv)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.kv, self.dim = a.heads, a.kv_heads, a.width // a.heads
        q, kv = self.heads * self.dim, self.kv * self.dim
        self.norm1, self.norm2 = torch.nn.Parameter(torch.ones(a.width)), torch.nn.Parameter(torch.ones(a.width))
        self.qkv = torch.nn.Linear(a.width, q + 2 * kv, bias=False)
        self.out = torch.nn.Linear(q, a.width, bias=False)
        self.gate_up = torch.nn.Linear(a.width, 2 * a.hidden, bias=False)
        self.down = torch.nn.Linear(a.hidden, a.width, bias=False)

    def forward(self, x, cos, sin, cache=None, at=0):
        b, n, _ = x.shape
        qkv = self.qkv(norm(x, self.norm1)).view(b, n, self.heads + 2 * self.kv, self.dim).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv, self.kv], 1)
        q, k = turn(q, cos, sin), turn(k, cos, sin)
        if cache is not None:
            cache[0][:, :, at:at + n], cache[1][:, :, at:at + n] = k, v
            k, v = cache[0][:, :, :at + n], cache[1][:, :, :at + n]
        if self.kv != self.heads:
            k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
        mixed = attend(q, k, v, n > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, -1))
        gate, up = self.gate_up(norm(x, self.norm2)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def attend(q, k, v, causal):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype), is_causal=causal)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return s.softmax(-1) @ v


def norm(x, w):
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, w.shape, w, 1e-6)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model(torch.nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = torch.nn.Embedding(a.vocab, a.width)
        self.blocks = torch.nn.ModuleList([Block(a) for _ in range(a.layers)])
        self.norm = torch.nn.Parameter(torch.ones(a.width))
        dim = a.width // a.heads
        angle = torch.arange(4096)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids, caches=None, at=0):
        x, n = self.embed(ids), ids.shape[1]
        for i, b in enumerate(self.blocks):
            x = b(x, self.cos[at:at + n], self.sin[at:at + n], None if caches is None else caches[i], at)
        if caches is not None:
            x = x[:, -1:]
        return norm(x, self.norm) @ self.embed.weight.to(x.dtype).t()


def measure(f, seconds):
    f()
    f()
    began, n = time.perf_counter(), 0
    while True:
        f()
        n += 1
        s = time.perf_counter() - began
        if s >= seconds:
            return s / n


def train(a, half):
    m = Model(a)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # begins the peak of resident memory anew
    before = resident("VmRSS")
    extra = {"fused": True} if torch.__version__ >= "2.4" else {}
    o = torch.optim.AdamW(m.parameters(), lr=1e-4, betas=(0.9, 0.95), **extra)
    ids = torch.randint(a.vocab, (a.batch, a.length))
    weight = torch.rand(a.batch, a.length - 1)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            logits = m(ids)[:, :-1]
        logp = -F.cross_entropy(logits.reshape(-1, a.vocab).float(), ids[:, 1:].reshape(-1), reduction="none").view(a.batch, -1)
        loss = -(weight * logp).sum()
        o.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()

    rate = a.batch * a.length / measure(step, a.seconds)
    return dict(tokens_per_second=rate, step_bytes=resident("VmHWM") - before, resident_bytes=resident("VmHWM"))


def resident(name):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(name + ":"))


@torch.no_grad()
def sample(a, half):
    dtype = torch.bfloat16 if half else torch.float32
    m = Model(a).to(dtype)
    dim = a.width // a.heads
    prompt = torch.randint(a.vocab, (a.sequences // a.group, a.prompt))

    def room(n, length):
        return [[torch.zeros(n, a.kv_heads, length, dim, dtype=dtype) for _ in range(2)] for _ in m.blocks]

    caches, read, first = room(a.sequences, a.prompt + a.sampled), room(len(prompt), a.prompt), []

    def prefill():
        if a.group == 1:
            return m(prompt, caches)[:, -1]
        logits = m(prompt, read)[:, -1]  # what a group shares is read once
        for to, part in zip(caches, read):
            for t, s in zip(to, part):
                t[:, :, :a.prompt] = s.repeat_interleave(a.group, 0)
        return logits.repeat_interleave(a.group, 0)

    def batch():
        began = time.perf_counter()
        for i in range(a.sampled):
            logits = prefill() if i == 0 else m(ids, caches, a.prompt + i - 1)[:, -1]
            ids = torch.multinomial(logits.float().softmax(-1), 1)
            if i == 0:
                first.append(time.perf_counter() - began)

    seconds = measure(batch, a.seconds)
    return dict(tokens_per_second=a.sequences * a.sampled / seconds, seconds_to_first_token=min(first),
                tokens_per_second_after_the_first=a.sequences * (a.sampled - 1) / (seconds - min(first)))


def one(a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    half = a.precision == "bfloat16"
    row = dict(torch=torch.__version__, what=a.what, precision=a.precision, threads=a.threads)
    row.update(train(a, half) if a.what == "train" else sample(a, half))
    print(json.dumps(row), flush=True)


def main():
    p = argparse.ArgumentParser()
    for name, default in dict(width=128, layers=4, heads=4, kv_heads=4, hidden=512, vocab=2048, batch=16, length=256, sequences=48, group=1, prompt=128,
                              sampled=64).items():
        p.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--what", choices=["train", "sample"])
    p.add_argument("--precision", default="float32")
    p.add_argument("--threads", type=int, default=0)
    a = p.parse_args()
    if a.what:
        return one(a)
    cores = os.cpu_count()
    precisions = ["float32"]
    if FLAGS & {"avx512_bf16", "amx_bf16"}:
        precisions.append("bfloat16")
    else:
        print("bfloat16 is left out: this processor has no instructions for it", file=sys.stderr)
    for what in ["train", "sample"]:
        for precision in precisions:
            for threads, processes in [(1, 1), (cores, 1), (1, cores)]:
                command = [sys.executable] + sys.argv + ["--what", what, "--precision", precision, "--threads", str(threads)]
                running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(processes)]
                out = [r.communicate() for r in running]
                if any(r.returncode for r in running):
                    print(json.dumps(dict(what=what, precision=precision, threads=threads, failed=out[0][1].strip().splitlines()[-1:])), flush=True)
                    continue
                rows = [json.loads(o) for o, _ in out]
                row = dict(rows[0], processes=processes)
                for key in row:
                    if key.startswith("tokens_per_second") or key.endswith("_bytes"):
                        row[key] = sum(r[key] for r in rows)
                    if key.startswith("seconds"):
                        row[key] = max(r[key] for r in rows)
                print(json.dumps(row), flush=True)


main()
