// Kueue: its controller, its chart and its CRDs.
module nos/test/controlplane/kueue

go 1.25.0

tool sigs.k8s.io/kueue/cmd/kueue

require sigs.k8s.io/kueue v0.17.0
