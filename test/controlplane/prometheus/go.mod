// The CustomResourceDefinitions of the Prometheus operator, which its module has as files. Nothing of it
// is compiled, so it needs none of its dependencies; `go mod tidy` would take the line away.
module nos/test/controlplane/prometheus

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
