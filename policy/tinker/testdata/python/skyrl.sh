#!/bin/sh
# Trains on SkyRL's Tinker server, with JAX on the processor: skyrl.sh SKILLMASTER DIR
#
# Installs SkyRL from PyPI under DIR, for which a Python 3.12 has to be there (PYTHON312 names one), makes a tiny random Qwen3,
# and teaches it the form of the game with our engine. SkyRL serves that: our engine and SkyRL are compared on the same
# weights, and our client trains five iterations there.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES=
export JAX_COMPILATION_CACHE_DIR="$dir/skyrl-compiled" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.5

step "find a Python 3.12"
python=$("${PYTHON312:-python3.12}" -c 'import sys; assert sys.version_info[:2] == (3, 12), sys.version; print(sys.executable)')
# Its API imports aiohttp, which neither of the two extras asks for.
install skyrl 'skyrl[tinker,jax]==0.4.0' aiohttp
PATH=$dir/uv/bin:$PATH

step "make a tiny random Qwen3"
rm -rf "$dir"/skyrl-*-run "$dir"/skyrl-words "$dir"/skyrl-random "$dir"/skyrl-base "$dir"/skyrl-kept "$dir"/skyrl.db*
small='world.sizes={"warm":400,"train":64,"probe":64,"gate":64,"valid":8,"report":8}'
"$program" train --preset smoke --run "$dir/skyrl-words-run" --iterations 0 --set train.warm.updates=1 --set corpus=100 --set "$small" \
	>"$dir/skyrl-words.log" 2>&1
"$program" model export --run "$dir/skyrl-words-run" --to "$dir/skyrl-words"
"$dir/skyrl/bin/python" "$here/make_qwen3.py" "$dir/skyrl-words" "$dir/skyrl-random" >"$dir/skyrl-random.log" 2>&1

step "teach it the form of the game with our engine"
plain="--set train.rollout.guide=false --set train.rollout.recap=0 --set train.rollout.action_tokens=24"
"$program" train --preset pretrained --set "model.pretrained=$dir/skyrl-random" --set model.adapter.rank=0 --set model.context=1024 \
	--set model.precision=float32 $plain --set train.rollout.review_tokens=96 --iterations 0 --set train.warm.updates=400 \
	--set train.warm.tokens=2000 --set train.warm.rate=6e-3 --set "$small" --run "$dir/skyrl-warm-run" >"$dir/skyrl-warm.log" 2>&1
"$program" model export --run "$dir/skyrl-warm-run" --to "$dir/skyrl-base"

step "start SkyRL"
port=$(port)
url=http://127.0.0.1:$port
# The server starts its engine by `uv run`, with what it was itself started by.
export VIRTUAL_ENV="$dir/skyrl" UV_OFFLINE=1
serve "$dir/skyrl-serve.log" uv run --no-project --active -m skyrl.tinker.api --host 127.0.0.1 --port "$port" --base-model "$dir/skyrl-base" \
	--backend jax --backend-config '{"max_lora_adapters":4,"max_lora_rank":8,"train_micro_batch_size":1,"sample_max_num_sequences":8}' \
	--checkpoints-base "$dir/skyrl-kept" --database-url "sqlite:///$dir/skyrl.db"
await answers "$url/api/v1/healthz"

step "log-probabilities and a step of the optimiser are those of our engine; a wrong dialect is refused"
SKILLMASTER_SKYRL_URL="$url" SKILLMASTER_SKYRL_MODEL="$dir/skyrl-base" SKILLMASTER_SKYRL_KEPT="$dir/skyrl-kept" \
	go test -count=1 -timeout 60m -run SkyRL -v "$here/../.."

step "five iterations on generated games"
"$program" train --preset distant --set "tinker.url=$url" --set tinker.dialect=skyrl-jax --set "tinker.model=$dir/skyrl-base" \
	--set "model.pretrained=$dir/skyrl-base" --set model.adapter.rank=8 --set model.context=512 $plain --set train.rollout.review_tokens=64 \
	--iterations 5 --set train.warm.updates=0 --set train.warm.clip_norm=0 --set train.learn.clip_norm=0 --set train.learn.rate=1e-3 \
	--set train.learn.rate_warm_up=0 --set train.tasks=2 --set train.group=4 --set train.probe.tasks=1 --set train.evaluate=5 --set "$small" \
	--run "$dir/skyrl-there-run" >"$dir/skyrl-train.log" 2>&1
python3 "$here/trained.py" "$dir/skyrl-there-run/run.db" 5
step "trained"
