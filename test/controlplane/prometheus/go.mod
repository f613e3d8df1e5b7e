// The CustomResourceDefinitions of the Prometheus operator, which are files in its module. Nothing
// is compiled, so its dependencies are not needed; `go mod tidy` would remove the line.
module nos/test/controlplane/prometheus

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
