# Each target is a command that you could type yourself; `make` alone lists them.
# `make test` runs them all and ends with one line of counts.

GO         ?= go
GOTOOL      = $(GO) tool -modfile=tools/go.mod
# make test sets JSON=-json, so that internal/tally can count what ran.
JSON       ?=
FUZZTIME   ?= 5s
BENCHTIME  ?= 1s
# Compiled for all of these; bebench is linked for the first five.
LINUX       = amd64 arm64 riscv64 ppc64le s390x
PLATFORMS   = $(LINUX:%=linux/%) darwin/arm64 windows/amd64
# cheapest first
PARTS      ?= fmt vet vet-compare lint unit model bench-once race cross vuln fuzz-short test-lab

SHELL       = /bin/bash
.SHELLFLAGS = -e -o pipefail -c

# The race detector alone needs a C compiler; everything else is built without.
export CGO_ENABLED = 0

.PHONY: help build test fmt vet vet-compare lint unit model bench-once race cross vuln fuzz fuzz-short test-lab test-kernels virtual compare-perftest compare-grpc compare-msg compare-rpc bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build everything, and bebench into bin/
	$(GO) build ./...
	@mkdir -p bin
	$(GO) build -trimpath -o bin/ ./cmd/bebench

test: ## run every part below up to test-lab, and count the results
	@$(GO) run ./internal/tally $(PARTS)

fmt: ## check that every Go file is gofmt-formatted
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted, run gofmt -w:"; echo "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

vet-compare: ## the same of compare/, a module of its own; skipped where its modules cannot be had
	@cd compare; if out=$$($(GO) mod download 2>&1); then $(GO) vet ./...; else echo "skipped: modules of compare/: $${out%%$$'\n'*}"; fi

lint: ## staticcheck (the house rules are tests: go test ./internal/house)
	$(GOTOOL) staticcheck ./...

unit: ## all tests, and every fuzz target on its seeds
	$(GO) test $(JSON) ./...

model: ## the suites of be, archon and ps over a modelled ConnectX NIC, but for what has no NIC in it
	SIM_MODEL=mlx5 $(GO) test $(JSON) -skip='^Test(Moves|RivalMoves|Replicas)$$' ./be ./archon ./ps

bench-once: ## every benchmark once, to keep it working
	$(GO) test $(JSON) -run='^$$' -bench=. -benchtime=1x ./...

race: ## all tests under the race detector; needs a C compiler
	@command -v $${CC:-cc} >/dev/null || { echo "race: no C compiler, and the race detector needs one: install gcc, or leave the part out with PARTS=\"...\""; exit 1; }
	CGO_ENABLED=1 $(GO) test $(JSON) -race ./...

cross: ## compile for every platform, and link bebench for every Linux one
	@for p in $(PLATFORMS); do \
		echo "build $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...; done
	@mkdir -p bin; for a in $(LINUX); do \
		echo "link bebench linux/$$a"; GOOS=linux GOARCH=$$a $(GO) build -trimpath -o bin/bebench-linux-$$a ./cmd/bebench; done
	@for p in darwin windows; do echo "vet $$p"; GOOS=$$p $(GO) vet ./...; done

vuln: ## known vulnerabilities in what we call; skipped without a network
	@rc=0; out=$$($(GOTOOL) govulncheck ./... 2>&1) || rc=$$?; \
	case "$$rc:$$out" in \
	0:*) echo "$$out";; \
	3:*) echo "$$out"; exit 1;; \
	*vuln.go.dev*) echo "skipped: vulnerability database unreachable";; \
	*) echo "$$out"; exit 1;; \
	esac

fuzz: ## every fuzz target for FUZZTIME (5s)
	@$(GO) test -list '^Fuzz' ./... | \
	awk '/^Fuzz/ { f[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' | \
	{ rc=0; while read -r pkg name; do \
		$(GO) test $(JSON) -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) $$pkg </dev/null || rc=1; done; exit $$rc; }

fuzz-short: FUZZTIME = 5000x
fuzz-short: fuzz ## every fuzz target for 5000 inputs

test-lab: ## the suites that need an RDMA device, in virtual machines with two stock kernels
	$(GO) run ./lab -kernel '6.1?,6.12?' $(JSON)

virtual: ## ps and archon in virtual time: every fault, and changes of the map, with 200 seeds
	VIRTUAL_SEEDS=200 $(GO) test $(JSON) -v -run='^Test(Virtual|Moves|RivalMoves)' -timeout=1h ./ps

test-kernels: ## the same on every kernel that the lab knows, arm64's too
	$(GO) run ./lab -kernel all $(JSON)

compare-perftest: ## bebench and perftest side by side in a virtual machine, medians of five runs
	$(GO) run ./lab -compare

compare-grpc: ## tests of gRPC-Go over ByteExpress, and one call beside TCP and beside plain messages
	cd compare && $(GO) test ./grpc -bench=. -benchtime=$(BENCHTIME)

compare-msg: build ## messages over be, TCP, gRPC-Go and a plain copy, in turn: one table; ARGS for bebench msg compare
	cd compare && $(GO) build -o ../bin/ ./grpc/grpcmsg
	bin/bebench msg compare -d sim: --also grpc=bin/grpcmsg $(ARGS)

# kitex is a module of its own, since it brings so many; what it links warns of new Go versions.
compare-rpc: build ## calls over archon on be and TCP, gRPC-Go and kitex (where it can be had), in turn: one table; ARGS for bebench rpc
	cd compare && $(GO) build -o ../bin/ ./grpc/grpcrpc
	@cd compare/kitex; rm -f ../../bin/kitexrpc; if out=$$($(GO) build -ldflags=-checklinkname=0 -o ../../bin/ ./kitexrpc 2>&1); then :; else echo "without kitex: $${out%%$$'\n'*}"; fi
	bin/bebench rpc -d sim: --also grpc=bin/grpcrpc $$(test ! -x bin/kitexrpc || echo --also kitex=bin/kitexrpc) $(ARGS) 2> >(grep -v '^WARNING: dynamicgo' >&2)

bench: ## all benchmarks for BENCHTIME (1s); compare two runs with: go tool -modfile=tools/go.mod benchstat
	$(GO) test -run='^$$' -bench=. -benchtime=$(BENCHTIME) ./...

clean: ## remove what was built
	rm -rf bin .cache
