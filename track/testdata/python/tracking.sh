#!/bin/sh
# Stock TensorBoard, pyarrow and MLflow read what a run gives them: tracking.sh SKILLMASTER DIR
#
# Installs them from PyPI in virtual environments under DIR (1.5 GB), makes a tiny run, and compares what each has of it with
# its JSON lines. Run it in the repository's root. Every step says what it does; the first that fails ends the script.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2")
work=$dir/tracking-work
port=${PORT:-5055}
export PYTHONDONTWRITEBYTECODE=1

step() { what=$*; echo "== $what" >&2; }
server=""
end() {
	code=$?
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ "$code" = 0 ] || echo "FAILED: $what (exit code $code; logs are in $work)" >&2
	exit "$code"
}
trap end EXIT

step "install tensorboard 2.21.0 and pyarrow 26.0.1 from PyPI"
[ -x "$dir/tracking/bin/tensorboard" ] || { python3 -m venv "$dir/tracking" && "$dir/tracking/bin/pip" install -q 'tensorboard==2.21.0' 'pyarrow==26.0.1'; }
step "install mlflow 3.17.2 from PyPI"
[ -x "$dir/mlflow/bin/mlflow" ] || { python3 -m venv "$dir/mlflow" && "$dir/mlflow/bin/pip" install -q 'mlflow==3.17.2'; }
rm -rf "$work"
mkdir -p "$work"

step "TensorBoard's own writer makes the bytes that the tests want"
"$dir/tracking/bin/python" "$here/events.py" write | fold -w 120 | cmp - "$here/../events.hex"

step "pyarrow reads what the tests write"
SKILLMASTER_PARQUET=$work go test -count=1 -run Parquet ./track
"$dir/tracking/bin/python" "$here/parquet.py" "$work"

step "start MLflow's server"
"$dir/mlflow/bin/mlflow" server --host 127.0.0.1 --port "$port" --workers 1 --backend-store-uri "sqlite:///$work/mlflow.db" \
	--default-artifact-root "$work/artifacts" >"$work/mlflow.log" 2>&1 &
server=$!
tries=0
until "$dir/mlflow/bin/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health')" 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -lt 600 ]
	sleep 1
done

step "train a tiny run that writes to both"
"$program" train --preset smoke --run "$work/tiny" --iterations 1 --set train.warm.updates=25 \
	--tensorboard "$work/tb" --mlflow "http://127.0.0.1:$port" >"$work/train.log" 2>&1
"$program" export jsonl --run "$work/tiny" --to "$work/tiny.jsonl"

step "compare, and once more after a second export"
for _ in 1 2; do
	"$dir/tracking/bin/python" "$here/events.py" compare "$work/tb/tiny" "$work/tiny.jsonl"
	"$dir/mlflow/bin/python" "$here/mlflow_run.py" "http://127.0.0.1:$port" skillmaster "$work/tiny.jsonl"
	"$program" export tensorboard --run "$work/tiny" --to "$work/tb"
	"$program" export mlflow --run "$work/tiny" --to "http://127.0.0.1:$port"
done
echo "all agree"
