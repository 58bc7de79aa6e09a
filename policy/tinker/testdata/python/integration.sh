#!/bin/sh
# The stock Python SDK of the Tinker API trains on our server: integration.sh SKILLMASTER DIR
#
# Installs the SDK from PyPI in a virtual environment under DIR, makes a tiny run, serves its policy, and has sdk.py drive
# the server. Every step says what it does; the first that fails ends the script.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
dir=$2
mkdir -p "$dir"
dir=$(realpath "$dir")
export PYTHONDONTWRITEBYTECODE=1 TINKER_TELEMETRY=0

step() { what=$*; echo "== $what" >&2; }
server=""
end() {
	code=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ "$code" = 0 ] || echo "FAILED: $what (exit code $code; logs are in $dir)" >&2
	exit "$code"
}
trap end EXIT

step "install tinker 0.38.0 from PyPI"
[ -x "$dir/tinker/bin/tinker" ] || { python3 -m venv "$dir/tinker" && "$dir/tinker/bin/pip" install -q 'tinker==0.38.0'; }

step "make a tiny run"
rm -rf "$dir/tinker-run" "$dir/tinker-kept"
"$program" train --preset smoke --run "$dir/tinker-run" --iterations 0 --set train.warm.updates=25 --set corpus=20 \
	--set 'world.sizes={"warm":8,"train":8,"probe":12,"gate":12,"valid":4,"report":4}' >"$dir/tinker-run.log" 2>&1

step "serve its policy"
"$program" serve --tinker --run "$dir/tinker-run" --name tiny --folder "$dir/tinker-kept" --listen 127.0.0.1:0 >"$dir/tinker-serve.log" 2>&1 &
server=$!
for _ in $(seq 240); do
	url=$(sed -n 's/^model tiny for programs: //p' "$dir/tinker-serve.log")
	[ -z "$url" ] || break
	sleep 0.5
done
[ -n "$url" ]

step "the SDK trains there"
"$dir/tinker/bin/python" "$here/sdk.py" "$url" tiny
step "trained"
