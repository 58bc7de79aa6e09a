#!/bin/sh
# The stock Python SDK of the Tinker API trains on our server: integration.sh SKILLMASTER DIR
#
# Installs the SDK from PyPI in a virtual environment under DIR, makes a tiny run, serves its policy, and has sdk.py drive
# the server.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"
export TINKER_TELEMETRY=0

install tinker 'tinker==0.38.0'

step "make a tiny run"
rm -rf "$dir/tinker-run" "$dir/tinker-kept"
"$program" train --preset smoke --run "$dir/tinker-run" --iterations 0 --set train.warm.updates=25 --set corpus=20 \
	--set 'world.sizes={"warm":8,"train":8,"probe":12,"gate":12,"valid":4,"report":4}' >"$dir/tinker-run.log" 2>&1

step "serve its policy"
serve "$dir/tinker-serve.log" "$program" serve --tinker --run "$dir/tinker-run" --name tiny --folder "$dir/tinker-kept" --listen 127.0.0.1:0
await grep -q '^model tiny for programs: ' "$dir/tinker-serve.log"
url=$(sed -n 's/^model tiny for programs: //p' "$dir/tinker-serve.log")

step "the SDK trains there"
"$dir/tinker/bin/python" "$here/sdk.py" "$url" tiny
step "trained"
