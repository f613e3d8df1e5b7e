// The allocator of Kubernetes 1.37, whose tests conformance_test.sh runs on nos.
module nos/test/dra

go 1.26.0

require k8s.io/dynamic-resource-allocation v0.37.2
