#!/bin/sh
# ALFWorld's own engine beside skillmaster.
#   original.sh compare SKILLMASTER FOLDER GAMES   plays GAMES games of each kind in both; fails where they differ
#   original.sh golden  SKILLMASTER FOLDER GAMES   writes ../original, which the Go tests play: so many games of each kind
#   original.sh bench   SKILLMASTER FOLDER ROUNDS  times both in turn
# FOLDER gets the Python packages, the games and what was recorded. Needs python3 (3.9 to 3.12), cmake, a C++ compiler and
# the network. With released games in $SKILLMASTER_DATA it uses those too.
set -eu
what=$1 program=$2 folder=$3 number=$4
here=$(dirname "$0")
python=$folder/venv/bin/python
export PYTHONDONTWRITEBYTECODE=1

mkdir -p "$folder"
if ! cmp -s "$here/requirements.txt" "$folder/installed.txt"; then
	rm -rf "$folder/venv" "$folder/texts"
	"${PYTHON:-python3}" -m venv "$folder/venv"
	"$python" -m pip install -q -r "$here/requirements.txt"
	# The rule texts before release 0.4, which speak otherwise.
	"$python" -m pip download -q --no-deps -d "$folder/texts" alfworld==0.3.5
	"$python" -m zipfile -e "$folder"/texts/alfworld-0.3.5-*.whl "$folder/texts"
	cp "$here/requirements.txt" "$folder/installed.txt"
fi
now=$("$python" -c 'import alfworld, os; print(os.path.join(list(alfworld.__path__)[0], "data"))')
old=$folder/texts/alfworld/data
released=no
if [ -f "${SKILLMASTER_DATA:-}/alfworld/train.jsonl.gz" ]; then released=yes; fi

pack() { "$program" data pack --form official "$@"; }
real() { pack --env alfworld --data "$SKILLMASTER_DATA" --to "$folder/released" "$@"; }

# same NAME OPTIONS...: records the games of folder NAME, and plays the recording again
same() {
	name=$1; shift
	nice "$python" "$here/record.py" "$folder/$name" "$folder/$name.jsonl.gz" "$@"
	"$program" replay --data "$folder/$name" --all "$folder/$name.jsonl.gz"
}

# generate FOLDER: games of every kind
generate() {
	pack --games "$number" --to "$1" --split usual --texts "$now"
	pack --games "$number" --to "$1" --split hard --texts "$now" --difficulty 1
	pack --games "$number" --to "$1" --split custom --texts "$now" --custom 0.8
	pack --games "$number" --to "$1" --split old --texts "$old" --wording put
}

golden() {
	rm -rf "$folder/golden" "$here/../original"
	generate "$folder/golden"
	"$program" data pack --env alfworld --data "$folder/golden" --to "$here/../original"
	mkdir "$here/../original/traces"
	nice "$python" "$here/record.py" "$folder/golden" "$here/../original/traces/turns.jsonl.gz" --episodes 3
	# Few games have a thing that lies in two receptacles: none of them is left out.
	nice "$python" "$here/record.py" "$folder/golden" "$here/../original/traces/doubles.jsonl.gz" --kinds doubles
	"$program" replay --data "$here/../original" --all "$here/../original/traces"
}

compare() {
	rm -rf "$folder/generated" "$folder/released"
	generate "$folder/generated"
	same generated --episodes 3 --steps 16
	if [ $released = no ]; then
		echo "NOT COMPARED: released games (none in SKILLMASTER_DATA)" >&2
		return
	fi
	real --games $((4 * number)) --split train --texts "$now"
	real --games "$number" --split valid_seen --split valid_train --texts "$now"
	real --games "$number" --split valid_unseen --texts "$old" --wording put
	same released --episodes 1 --steps 24
}

bench() {
	rm -rf "$folder/bench"
	split=valid_unseen
	if [ $released = yes ]; then
		pack --env alfworld --data "$SKILLMASTER_DATA" --texts "$now" --to "$folder/bench" --split $split
	else
		pack --games 100 --texts "$now" --to "$folder/bench" --split $split
	fi
	"$python" "$here/beside.py" "$program" "$folder/bench" $split --rounds "$number"
}

case $what in
compare | golden | bench) "$what" ;;
*) echo "original.sh: compare, golden or bench" >&2; exit 2 ;;
esac
