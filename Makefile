# What can be done here: `make help`. Two commands are enough to begin with:
# `make demo` shows Dovetail at work, `make test` checks everything.

GO      ?= go
IMAGE   ?= registry.local/dovetail:dev
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
NODES   ?= 1
MACHINE ?= dgx-h100

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-builtin-rules
.DEFAULT_GOAL := help

ifeq ($(shell command -v $(GO)),)
  ifneq ($(filter-out help,$(or $(MAKECMDGOALS),help)),)
    $(error $(GO) is not on PATH: install Go 1.26 or later, or say where it is with GO=…)
  endif
endif

# Go and the caches need a home, which a service or a bare CI may not have.
ifeq ($(HOME),)
  export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif
# Version control is asked once, above, and not by every build: git refuses to
# answer in a checkout that belongs to somebody else.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -buildvcs=false)

LDFLAGS  := -s -w -X github.com/dovetail-dra/dovetail/pkg/command.Version=$(VERSION)
GO_BUILD  = $(GO) build -trimpath -ldflags "$(LDFLAGS)"
# Without gRPC's trace pages, and the templates that they are made with, the
# linker drops a third of the agent.
TAGS     := grpcnotrace
LINT      = $(GO) run ./hack/tool golangci-lint

# Debian packages, by what needs them.
BUILD_PACKAGES   := gcc libc6-dev
VM_PACKAGES      := $(BUILD_PACKAGES) gcc-12 binutils make xz-utils libelf1 pkg-config libseccomp-dev
CLUSTER_PACKAGES := $(BUILD_PACKAGES) pkg-config libseccomp-dev busybox-static iproute2 util-linux mount procps

##@ See it

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9\/.-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: cluster-images cluster-build ## a real cluster with simulated GPUs and NICs: what is asked for, given and seen (DEMO=-keep lets it stay)
	$(GO) run ./demo $(DEMO)

.PHONY: cluster
cluster: cluster-build ## only the cluster, to play with (NODES=1); bin/cluster down ends it
	bin/cluster up $(NODES)

.PHONY: install
install: cluster-images bin/cluster ## Dovetail in that cluster, with a simulated machine on each node (MACHINE=dgx-h100)
	$(GO) run ./demo -install $(MACHINE)

##@ Check it

.PHONY: test
test: setup-cluster setup-vm bin/check bin/vm ## everything: verify, unit, vm and e2e; the last line counts the tests
	@bin/check verify unit vm e2e

.PHONY: verify
verify: setup-build bin/check ## formatting, lint, generated files, chart, import rules
	@bin/check verify

.PHONY: unit
unit: setup-build bin/check ## tests that need no cluster (under two minutes)
	@bin/check unit

.PHONY: vm
vm: setup-vm bin/check bin/vm ## NICs and containers on a real kernel in a virtual machine, which is downloaded first
	@bin/check vm

.PHONY: e2e
e2e: setup-cluster bin/check ## tests on a real cluster, which is built first (minutes, once)
	@bin/check e2e

.PHONY: bench
bench: cluster-images cluster-build bin/bench bin/bench-floor ## the figures of docs/benchmarks.md (BENCH=-update writes them there)
	bin/bench $(BENCH)

.PHONY: lint
lint: ## golangci-lint alone
	$(LINT) run

##@ Build it

.PHONY: build
build: bin/dovetail-node bin/dovetail-controller bin/dovetail-mps bin/dovetail-hook bin/dovetail-sim bin/dovetail-sim-tools bin/libnvidia-ml.so.1 ## all binaries, into bin/

.PHONY: image
image: bin/dovetail-node bin/dovetail-controller bin/dovetail-mps bin/dovetail-hook ## the image without a container engine: out/dovetail.tar (IMAGE=name:tag)
	@$(GO) run ./hack/mkimage -agent bin/dovetail-node -controller bin/dovetail-controller -mps bin/dovetail-mps -hook bin/dovetail-hook -ref $(IMAGE) -version $(VERSION) -out out/dovetail.tar

##@ Change it

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt

.PHONY: generate
generate: chart-docs ## everything that is generated: code, the CRD and its reference, the chart's README
	$(GO) generate ./...

.PHONY: chart-docs
chart-docs:
	$(GO) run ./hack/chartdoc

.PHONY: golden
golden: ## write the golden files of the tests anew; look at the diff
	$(GO) test ./test/chart ./pkg/catalog ./pkg/cdi ./cmd/dovetail-node -update

.PHONY: clean
clean: ## remove what was built here (what is cached outside the tree stays)
	rm -rf bin out

# What follows is not for typing.

.PHONY: setup-build setup-vm setup-cluster
setup-build:
	@hack/setup.sh $(BUILD_PACKAGES)
# What is missing for the virtual machine is told by its launcher, too.
setup-vm:
	@hack/setup.sh $(VM_PACKAGES) || true
setup-cluster:
	@hack/setup.sh $(CLUSTER_PACKAGES)

# What the local cluster's nodes get: images, and the simulator for their hardware.
.PHONY: cluster-images
cluster-images: image out/podcheck.tar out/cuda.tar bin/dovetail-sim bin/dovetail-sim-tools bin/libnvidia-ml.so.1

.PHONY: cluster-build
cluster-build: bin/cluster
	bin/cluster build

# The go command knows what is up to date.
.PHONY: FORCE
FORCE:

bin/dovetail-node: FORCE setup-build
	@test -d cmd/dovetail-node || { echo "cmd/dovetail-node does not exist yet"; exit 1; }
	CGO_ENABLED=1 $(GO_BUILD) -tags $(TAGS) -o $@ ./cmd/dovetail-node

bin/dovetail-controller: FORCE setup-build
	CGO_ENABLED=0 $(GO_BUILD) -tags $(TAGS) -o $@ ./cmd/dovetail-controller

bin/dovetail-mps: FORCE setup-build
	CGO_ENABLED=1 $(GO_BUILD) -tags $(TAGS) -o $@ ./cmd/dovetail-mps

bin/dovetail-hook: FORCE setup-build
	CGO_ENABLED=1 $(GO_BUILD) -o $@ ./cmd/dovetail-hook

bin/dovetail-sim: FORCE setup-build
	@test -d cmd/dovetail-sim || { echo "cmd/dovetail-sim does not exist yet"; exit 1; }
	$(GO_BUILD) -o $@ ./cmd/dovetail-sim

bin/dovetail-sim-tools: FORCE setup-build
	@test -d cmd/dovetail-sim-tools || { echo "cmd/dovetail-sim-tools does not exist yet"; exit 1; }
	CGO_ENABLED=0 $(GO_BUILD) -o $@ ./cmd/dovetail-sim-tools

bin/libnvidia-ml.so.1: FORCE setup-build
	@test -d cmd/libnvidia-ml || { echo "cmd/libnvidia-ml does not exist yet"; exit 1; }
	CGO_ENABLED=1 $(GO_BUILD) -buildmode=c-shared -o $@ ./cmd/libnvidia-ml

bin/cluster: FORCE setup-cluster
	@test -f test/cluster/go.mod || { echo "test/cluster does not exist yet"; exit 1; }
	$(GO) build -C test/cluster -o $(CURDIR)/$@ .

bin/vm: FORCE setup-build
	$(GO) build -o $@ ./test/vm

bin/podcheck: FORCE setup-build
	@test -d test/harness/podcheck || { echo "test/harness/podcheck does not exist yet"; exit 1; }
	CGO_ENABLED=0 $(GO_BUILD) -o $@ ./test/harness/podcheck

out/podcheck.tar: bin/podcheck
	@$(GO) run ./hack/mkimage -static bin/podcheck -ref registry.local/dovetail-podcheck:dev -out $@

out/cuda.tar: bin/dovetail-sim-tools
	@$(GO) run ./hack/mkimage -static bin/dovetail-sim-tools -ref registry.local/dovetail-cuda:dev -out $@

bin/bench: FORCE setup-build
	@test -d test/bench || { echo "test/bench does not exist yet"; exit 1; }
	$(GO_BUILD) -o $@ ./test/bench

bin/bench-floor: FORCE setup-build
	@test -d test/bench/floor || { echo "test/bench/floor does not exist yet"; exit 1; }
	$(GO_BUILD) -tags $(TAGS) -o $@ ./test/bench/floor

bin/check: FORCE
	@$(GO) build -o $@ ./hack/run
