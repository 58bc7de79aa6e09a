#!/bin/sh
# Plays with the stock OpenEnv packages, in both directions: integration.sh SKILLMASTER DIR DATA EPISODES
#
# Installs the packages from PyPI, each release in a virtual environment of its own under DIR. Then each of their clients
# plays our worlds, and what it saw is compared with the same episodes in-process; their validator looks at our server; and
# we play their example environment on their server. Every step says what it does; the first that fails ends the script.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
dir=$2
data=$(realpath "$3")
episodes=$4
mkdir -p "$dir"
dir=$(realpath "$dir")
export PYTHONDONTWRITEBYTECODE=1

step() { what=$*; echo "== $what" >&2; }
servers=""
end() {
	code=$?
	for pid in $servers; do kill "$pid" 2>/dev/null || true; done
	[ "$code" = 0 ] || echo "FAILED: $what (exit code $code; logs are in $dir)" >&2
	exit "$code"
}
trap end EXIT

install() { # name requirement
	step "install $2 from PyPI"
	[ -x "$dir/$1/bin/openenv" ] || { python3 -m venv "$dir/$1" && "$dir/$1/bin/pip" install -q "$2"; }
}

# waits for a line of a log and prints its last word
wait_for() { # log pattern
	for _ in $(seq 240); do
		line=$(grep -m 1 "$2" "$1" 2>/dev/null || true)
		[ -z "$line" ] || { echo "${line##* }"; return; }
		sleep 0.5
	done
	echo "nothing like \"$2\" in $1 within 2 minutes" >&2
	return 1
}

install openenv 'openenv==0.10.0'
install openenv-core 'openenv-core==0.3.0'

play() { # world split
	step "serve $1"
	"$program" serve --openenv --env "$1" --data "$data" --listen 127.0.0.1:0 >"$dir/$1.log" 2>&1 &
	pid=$!
	servers="$servers $pid"
	url=$(wait_for "$dir/$1.log" 'ws://')
	for client in openenv openenv-core; do
		step "the client of $client plays $1 ($2)"
		"$dir/$client/bin/python" "$here/play.py" "http://${url#ws://}" "$2" "$episodes" >"$dir/$1-$client.jsonl"
		step "compare with $1 in-process"
		python3 "$here/compare.py" "$program" "$1" "$data" <"$dir/$1-$client.jsonl"
		step "the validator of $client looks at $1"
		"$dir/$client/bin/openenv" validate --url "http://${url#ws://}" >"$dir/$1-$client-validate.log"
	done
	kill "$pid"
}

play household valid
play shop report
if [ -d "$data/alfworld" ]; then play alfworld valid_unseen; else echo "not played: alfworld is not under $data" >&2; fi
if [ -d "$data/webshop" ]; then play webshop report; else echo "not played: webshop is not under $data" >&2; fi

step "make the example environment of openenv 0.10.0"
[ -d "$dir/echo/echo_env" ] || { mkdir -p "$dir/echo" && (cd "$dir/echo" && "$dir/openenv/bin/openenv" init echo_env >"$dir/init.log" 2>&1); }
for client in openenv openenv-core; do
	step "serve it with $client"
	(cd "$dir/echo/echo_env" && exec "$dir/$client/bin/python" -m uvicorn server.app:app --port 0) >"$dir/echo-$client.log" 2>&1 &
	pid=$!
	servers="$servers $pid"
	wait_for "$dir/echo-$client.log" 'running on' >/dev/null
	url=$(sed -n 's/.*running on http:\/\/\([0-9.:]*\).*/\1/p' "$dir/echo-$client.log")
	step "we play it on the server of $client"
	python3 "$here/echo.py" "$program" "ws://$url"
	kill "$pid"
done
step "all played"
