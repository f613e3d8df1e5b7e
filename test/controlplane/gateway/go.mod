// The CustomResourceDefinitions of the Gateway API, which are files in its module. Nothing is
// compiled, so its dependencies are not needed; `go mod tidy` would remove the line.
module nos/test/controlplane/gateway

go 1.24.0

require sigs.k8s.io/gateway-api v1.4.0
