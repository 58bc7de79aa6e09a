# How the scripts begin that install software which is not ours and try it. They are called as SCRIPT SKILLMASTER DIR …, and
# source this file. Every step says what it does; the first that fails ends the script, and what was served with it.
set -eu

program=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2")
export PYTHONPYCACHEPREFIX="$dir/compiled"

step() { what=$*; echo "== $what" >&2; }

servers=""
end() {
	code=$?
	for pid in $servers; do { kill "$pid" && wait "$pid"; } 2>/dev/null || true; done
	[ "$code" = 0 ] || echo "FAILED: $what (exit code $code; logs are in $dir)" >&2
	exit "$code"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# install NAME REQUIREMENT…: a virtual environment DIR/NAME with packages from PyPI. python names its Python, python3 is the
# default; overrides are lines of requirements in place of what packages ask for. uv does it, since pip alone can take hours
# to choose versions.
install() {
	name=$1
	shift
	step "install $* from PyPI"
	[ -x "$dir/uv/bin/uv" ] || { python3 -m venv "$dir/uv" && "$dir/uv/bin/pip" install -q uv; }
	[ "$(cat "$dir/$name/installed.txt" 2>/dev/null)" != "$*" ] || return 0
	"$dir/uv/bin/uv" venv -q --clear --python "${python:-$(python3 -c 'import sys; print(sys.executable)')}" "$dir/$name"
	echo "${overrides:-}" >"$dir/$name/overrides.txt"
	"$dir/uv/bin/uv" pip install -q --python "$dir/$name/bin/python" --override "$dir/$name/overrides.txt" "$@"
	echo "$*" >"$dir/$name/installed.txt"
}

# port prints a free one.
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# serve LOG COMMAND…: runs on until the script ends, as the process server.
serve() {
	log=$1
	shift
	"$@" >"$log" 2>&1 &
	server=$!
	servers="$servers $server"
}

# await COMMAND…: until it works, for ten minutes at most, or patience seconds, and not longer than the server lives.
await() {
	late=$(($(date +%s) + ${patience:-600}))
	until "$@" 2>/dev/null; do
		kill -0 "$server"
		[ "$(date +%s)" -lt "$late" ]
		sleep 1
	done
}

# answers URL: whether something is there.
answers() { python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)' "$1"; }
