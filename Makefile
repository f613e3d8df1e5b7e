# Targets that the Go project had, as thin wrappers over script/, helm and kubectl.
#
#   make deploy IMG=HOST/OWNER/nos:0.1.0     installs nos into the cluster of the current kubectl context
#   make undeploy                            removes it; the kinds of elastic quotas stay
#
# README.md and CONTRIBUTING.md name the scripts themselves.

VERSION ?= $(shell sed -n 's/^version: *//p' deploy/helm/nos/Chart.yaml)
NAMESPACE ?= nebuly-nos
RELEASE ?= nos
CHART ?= deploy/helm/nos
# The image to deploy; script/image builds one.
IMG ?= nos:$(VERSION)
# HOST/OWNER of a registry, for docker-push, helm-push and release.
REGISTRY ?=
# Further arguments of helm, such as ARGS="--set operator.replicaCount=1 -f values.yaml".
ARGS ?=
HELM ?= $(shell command -v helm || script/controlplane binary helm)
KUBECTL ?= kubectl
# docker or podman; NOS_IMAGE_ENGINE chooses for script/image.
ENGINE ?= docker

.DEFAULT_GOAL := help
.PHONY: help build test lint docker-build docker-push deploy undeploy install uninstall helm-package \
        helm-push release cluster

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

build: ## Builds build/release/nos
	script/bootstrap && bash -c '. script/lib.sh && configure_and_build release nos'

test: ## Runs every test
	script/test

lint: ## Formatting, shell scripts, prose, static analysis
	script/lint

docker-build: ## Builds the image IMG with docker, podman or buildah
	script/image $(IMG)

docker-push: ## Pushes the image IMG
	$(ENGINE) push $(IMG)

deploy: ## Installs or upgrades nos in the current cluster, with the image IMG
	$(HELM) upgrade --install $(RELEASE) $(CHART) --namespace $(NAMESPACE) --create-namespace \
	  --set gpuPartitioner.image.repository=$(basename-of-image),gpuPartitioner.image.tag=$(tag-of-image),gpuPartitioner.image.digest=$(digest-of-image) $(ARGS)

undeploy: ## Removes nos from the current cluster
	$(HELM) uninstall $(RELEASE) --namespace $(NAMESPACE) --ignore-not-found $(ARGS)

install: ## Installs the kinds of elastic quotas alone
	$(CRDS) | $(KUBECTL) apply --server-side --force-conflicts -f -
	@# So that a later deploy takes them for its own.
	@$(CRDS) | $(KUBECTL) annotate --overwrite -f - meta.helm.sh/release-name=$(RELEASE) \
	  meta.helm.sh/release-namespace=$(NAMESPACE) >/dev/null

uninstall: ## Removes the kinds of elastic quotas, and with them every quota
	$(CRDS) | $(KUBECTL) delete --ignore-not-found -f -

helm-package: ## Makes image, chart and bills of materials in build/release-VERSION; pushes nothing
	script/release $(VERSION) $(if $(REGISTRY),--registry $(REGISTRY)) $(ARGS)

helm-push: ## The same, and pushes image and chart to REGISTRY
	@test -n "$(REGISTRY)" || { echo "error: make helm-push REGISTRY=HOST/OWNER" >&2; exit 1; }
	script/release $(VERSION) --registry $(REGISTRY) --push $(ARGS)

release: helm-package ## The same as helm-package

cluster: ## Starts a real control plane on this machine, without GPUs
	script/controlplane up

CRDS = $(HELM) template $(RELEASE) $(CHART) -n $(NAMESPACE) --kube-version 1.34 --show-only templates/crds.yaml
# REPOSITORY, TAG and DIGEST of IMG; the host may have a port.
basename-of-image = $(shell echo '$(IMG)' | sed 's|@.*||; s|:[^:/]*$$||')
tag-of-image = $(shell echo '$(IMG)' | sed -n 's|@.*||; s|.*:\([^:/]*\)$$|\1|p')
digest-of-image = $(shell echo '$(IMG)' | sed -n 's|.*@||p')
