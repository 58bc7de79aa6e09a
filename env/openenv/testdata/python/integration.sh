#!/bin/sh
# Plays with the stock OpenEnv packages, in both directions: integration.sh SKILLMASTER DIR DATA EPISODES
#
# Installs the packages from PyPI, each release in a virtual environment of its own under DIR. Then each of their clients
# plays our worlds, and what it saw is compared with the same episodes in-process; their validator looks at our server; and
# we play their example environment on their server.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../../testdata/python/steps.sh"
data=$(realpath "$3")
episodes=$4

install openenv 'openenv==0.10.0'
install openenv-core 'openenv-core==0.3.0'

play() { # world split
	step "serve $1"
	serve "$dir/$1.log" "$program" serve --openenv --env "$1" --data "$data" --listen 127.0.0.1:0
	await grep -q 'ws://' "$dir/$1.log"
	url=http://$(sed -n 's/.*ws:\/\///p' "$dir/$1.log")
	for client in openenv openenv-core; do
		step "the client of $client plays $1 ($2)"
		"$dir/$client/bin/python" "$here/play.py" "$url" "$2" "$episodes" >"$dir/$1-$client.jsonl"
		step "compare with $1 in-process"
		python3 "$here/compare.py" "$program" "$1" "$data" <"$dir/$1-$client.jsonl"
		step "the validator of $client looks at $1"
		"$dir/$client/bin/openenv" validate --url "$url" >"$dir/$1-$client-validate.log"
	done
	kill "$server"
}

play household valid
play shop report
if [ -d "$data/alfworld" ]; then play alfworld valid_unseen; else echo "not played: alfworld is not under $data" >&2; fi
if [ -d "$data/webshop" ]; then play webshop report; else echo "not played: webshop is not under $data" >&2; fi

step "make the example environment of openenv 0.10.0"
[ -d "$dir/echo/echo_env" ] || { mkdir -p "$dir/echo" && (cd "$dir/echo" && "$dir/openenv/bin/openenv" init echo_env >"$dir/init.log" 2>&1); }
for client in openenv openenv-core; do
	step "serve it with $client"
	serve "$dir/echo-$client.log" "$dir/$client/bin/python" -m uvicorn --app-dir "$dir/echo/echo_env" server.app:app --port 0
	await grep -q 'running on' "$dir/echo-$client.log"
	url=$(sed -n 's/.*running on http:\/\/\([0-9.:]*\).*/\1/p' "$dir/echo-$client.log")
	step "we play it on the server of $client"
	python3 "$here/echo.py" "$program" "ws://$url"
	kill "$server"
done
step "all played"
