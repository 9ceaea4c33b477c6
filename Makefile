# Everything a developer runs. `make help` lists the targets.

SHELL := /bin/sh
CARGO ?= cargo
# The cluster of its current context is the one that install, run, deploy and undeploy mean.
KUBECTL ?= kubectl
# How many test programs run at a time.
JOBS ?= 6
# What each of several targets prints comes in one piece, where make can do that.
IN_ONE_PIECE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# Seconds for each fuzz target.
FUZZ_SECONDS ?= 60
# How many random stories `make simulation` tells besides the first six.
SEEDS ?= 60
# How many stories `make test` tells. They are the same ones in each run: a run that fails is one that the change has broken.
STORIES ?= 66
# Thousands of stories pay for an optimised build. The few of `make test` do not.
OPTIMISED := CARGO_PROFILE_DEV_OPT_LEVEL=2 CARGO_PROFILE_DEV_DEBUG=0

# Targets of tests, of the root package and of crates: a file, or a folder with a main.rs.
TESTS := $(basename $(notdir $(wildcard tests/*.rs crates/*/tests/*.rs))) \
	$(notdir $(patsubst %/main.rs,%,$(wildcard tests/*/main.rs crates/*/tests/*/main.rs)))
# What test-core leaves out: all of their tests need a control plane. It leaves out those of the other targets, too.
PLANE_TESTS := cluster_apply cluster_ops cluster_prune cluster_rollout cluster_survive cluster_systems
# Modules that run on the real control plane and on the sandbox. crates/test-support/src/sandbox_plane.rs lists the tests that cannot.
SANDBOX_TESTS := alone/moves_across $(addprefix cluster_apply/,claim_evidence lags report_mode) \
	$(addprefix cluster_prune/,broken_neighbours held_identity held_recreate held_revision held_rows suspended_deletion) \
	$(addprefix cluster_rollout/,rollout webhooks_last) cluster_source/follows_itself \
	$(addprefix cluster_survive/,api_server_away status_of_a_dead_daemon) page/history
CORE_TESTS := $(filter-out $(PLANE_TESTS),$(TESTS))

.PHONY: help test test-core test-sandbox test-minors test-programs oracles simulation fmt check-fmt lint doc release dist image chart site control-plane tools install run deploy undeploy bench fuzz deny

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target what; do \
		printf '%-15s %s\n' "$$target" "$$what"; done

# One after another also under `make -j`: what failed stands at the end. Only what is built is built at the same time.
test: ## everything: format, lints, documentation, control plane, all tests, 66 stories of the simulation
	$(MAKE) check-fmt
	$(MAKE) lint
	$(MAKE) doc
	$(MAKE) -j2 $(IN_ONE_PIECE) control-plane test-programs
	CARGO='$(CARGO)' JOBS='$(JOBS)' STORIES='$(STORIES)' SANDBOX_TESTS='$(SANDBOX_TESTS)' \
		MOORLINE_LONG_TESTS=1 sh tests/run.sh

test-core: ## the tests that need only Rust and git, with fixed seeds; minutes, once built
	MOORLINE_TEST_PLANE=none PROPTEST_RNG_SEED=1 MOORLINE_SIMULATION_FIXED=2 sh tests/left_out.sh \
		$(CARGO) test --workspace --locked --lib --bins $(addprefix --test ,$(CORE_TESTS))

test-sandbox: ## the scenarios that the sandbox runs, without a control plane; minutes, once built
	MOORLINE_TEST_PLANE=sandbox sh tests/left_out.sh $(CARGO) test --locked \
		$(addprefix --test ,$(sort $(patsubst %/,%,$(dir $(SANDBOX_TESTS))))) -- $(addsuffix ::,$(notdir $(SANDBOX_TESTS)))

fmt: ## format the code
	$(CARGO) fmt --all

check-fmt: ## say what is not formatted
	$(CARGO) fmt --all --check

lint: ## clippy on all targets; a warning is an error
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc: ## the documentation; a warning is an error
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

release: ## the binary of a release for this machine: small, and minutes to build
	$(CARGO) build --profile dist --locked

# Without Docker, and as any user. What it needs besides is fetched into target/dist-tools.
dist: ## static binaries for TARGET, or for both architectures of Linux: tarballs, components, licences, checksums in dist/
	$(CARGO) xtask dist $(addprefix --target ,$(TARGET))

image: ## both images from the binaries of `make dist`, as OCI layouts in dist/; needs Go for helm
	$(CARGO) xtask image

# A release passes the image that it pushed; without it, the chart asks for image.repository.
chart: ## the chart as an archive in dist/; IMAGE, DIGEST and HELM_DIGEST become its default image
	$(CARGO) xtask chart $(addprefix --image ,$(IMAGE)) $(addprefix --digest ,$(DIGEST)) \
		$(addprefix --helm-digest ,$(HELM_DIGEST))

test-minors: control-plane ## the core tests on each supported minor version of Kubernetes, or on MINOR; as at night
	CARGO='$(CARGO)' sh tests/control-plane/minors.sh $(MINOR)

test-programs: ## compile every test, and run none
	$(CARGO) test --workspace --locked --no-run

oracles: ## secrets and signatures beside the libraries of SOPS and Sigstore and an emulation of AWS, on random inputs; as at night
	CARGO='$(CARGO)' sh tests/oracles.sh

simulation: ## the daemon through SEEDS random stories of faults; minutes
	$(OPTIMISED) MOORLINE_SIMULATION_SEEDS='$(SEEDS)' $(CARGO) test --locked --test simulation -- --nocapture

site: ## the documentation as a site in target/site, with its links checked
	$(CARGO) xtask site

control-plane: ## build the API server of the tests; minutes the first time, then nothing
	@command -v go >/dev/null 2>&1 || { \
		echo "Go is needed for the control plane: tests/control-plane/go.mod says which version (https://go.dev/dl/)" >&2; \
		exit 1; }
	sh tests/control-plane/build.sh

tools: ## fetch helm, kubectl, Prometheus and sshd for the tests, where they are not on PATH
	bash .ci/tools.sh

install: ## bring the definition of Syncs to the cluster
	$(KUBECTL) apply --server-side --force-conflicts -f config/crd/moorline.dev_syncs.yaml

run: ## the daemon on this machine, with your own rights in the cluster
	$(CARGO) run --locked -- run --data-dir target/mirrors

# A kustomization cannot refuse: its Pod would wait for an image that does not exist.
deploy: ## the definition, the daemon and its rights, without Helm; newName in config/manager/kustomization.yaml is the image
	@! grep -q 'newName: image-is-not-set' config/manager/kustomization.yaml || { \
		echo "the image is not set: make it (make dist image), push it to a registry that the cluster pulls from," \
			"and write its name to newName in config/manager/kustomization.yaml" >&2; \
		exit 1; }
	$(KUBECTL) apply -k config/default

# Syncs, their definition, their namespace and the key Secret stay: with them would go what they hold and prove.
undeploy: ## take the daemon and its rights away again; Syncs and objects stay
	$(KUBECTL) delete --ignore-not-found -k config/manager
	$(KUBECTL) delete --ignore-not-found -k config/rbac

bench: ## the benchmarks; that of the loop needs the control plane, and takes half an hour
	$(MAKE) control-plane
	$(CARGO) bench --locked

fuzz: ## every fuzz target for FUZZ_SECONDS seconds, as at night; needs nightly Rust and cargo-fuzz
	FUZZ_SECONDS='$(FUZZ_SECONDS)' sh fuzz/nightly.sh

# A database of advisories is not fetched here: `cargo deny fetch` brings one.
ADVISORIES ?= $(or $(CARGO_HOME),$(HOME)/.cargo)/advisory-dbs
deny: ## licences, bans, sources and advisories of the dependencies; needs cargo-deny
	@command -v cargo-deny >/dev/null 2>&1 || { \
		echo "cargo-deny is needed: cargo install cargo-deny --locked" >&2; exit 1; }
	$(CARGO) deny --locked check licenses bans sources
	@if ls -d '$(ADVISORIES)'/*/ >/dev/null 2>&1; then \
		$(CARGO) deny --locked check --disable-fetch advisories; \
	else \
		echo "advisories are not checked: there is no database in $(ADVISORIES); cargo deny fetch brings one" >&2; fi
