#!/bin/sh
# Plays with a model behind `transformers serve`: transformers.sh SKILLMASTER DIR
#
# Installs transformers from PyPI under DIR, makes a small run, exports its policy and has transformers serve it. Our client
# compares what is said there with what our engine says, and looks for skills with weights that stay as they are.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 CUDA_VISIBLE_DEVICES=

install transformers 'transformers[serving]==5.24.0'
bin=$dir/transformers/bin

step "make a small run and export its policy"
model=$dir/transformers-model
rm -rf "$dir"/transformers-*-run "$model"
small='world.sizes={"warm":200,"train":8,"probe":12,"gate":12,"valid":4,"report":4}'
"$program" train --preset smoke --run "$dir/transformers-warm-run" --iterations 0 --set train.warm.updates=300 --set "$small" >"$dir/transformers-warm.log" 2>&1
"$program" model export --run "$dir/transformers-warm-run" --to "$model"
# It samples only where the model's own settings say so, whatever the temperature.
"$bin/python" -c 'import json, sys; f = sys.argv[1]; s = json.load(open(f)) | {"do_sample": True}; json.dump(s, open(f, "w"))' "$model/generation_config.json"

step "serve it"
port=$(port)
url=http://127.0.0.1:$port
serve "$dir/transformers-serve.log" "$bin/transformers" serve "$model" --host 127.0.0.1 --port "$port" --device cpu
await answers "$url/health"

step "it says what our engine says"
SKILLMASTER_TRANSFORMERS_URL="$url" SKILLMASTER_TRANSFORMERS_MODEL="$model" go test -count=1 -run TransformersServe -v "$here/../.."

step "three iterations with weights that stay as they are"
"$program" train --preset server --set "server.url=$url" --set "server.model=$model" --set train.rollout.guide=false --set train.rollout.recap=0 \
	--set train.rollout.action_tokens=24 --set train.rollout.review_tokens=96 --iterations 3 --set train.tasks=2 --set train.group=2 \
	--set train.probe.tasks=1 --set train.evaluate=3 --set "$small" --run "$dir/transformers-there-run" >"$dir/transformers-train.log" 2>&1
"$bin/python" "$here/played.py" "$dir/transformers-there-run/run.db" 3
step "played"
