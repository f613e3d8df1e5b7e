// Kueue's CRDs, for the examples of docs/kueue.md: files of this module; nothing of it is compiled.
module nos/test/controlplane/kueue

go 1.25.0

require sigs.k8s.io/kueue v0.17.0
