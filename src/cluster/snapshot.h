// One consistent picture of the cluster for one decision. A fork costs what it changes.
//
//   ClusterSnapshot next = snapshot;              // shares every node
//   next.Bind(pod, "gpu-7");                      // copies one node (and a page of pointers)
//
// Values: a copy may be changed without the original noticing. Different copies may be used from
// different threads; one copy may not be changed while it is read.
//
// Which pod holds which instance is not in the node's status, so Build assumes: pods in the order
// of their keys take the instances that the status counts as used, then free ones. A pod whose
// instance the status does not show at all gets one assumed where the spec wants it, else wherever
// one is legal, in place of free instances if need be; when that fails too, a problem says so.
//
// Nor is it known which GPUs are handed out whole (nvidia.com/gpu): none that has instances, but
// any other, for an agent reports a free GPU with MIG mode off as empty, too. While pods hold whole
// GPUs, those of their node that no agent reports are left out of `gpus`; when these are fewer than
// the pods hold, the reported ones without instances are fixed. GPUs without instances that may be
// cut are no whole ones: `allocatable` counts only what is beyond them.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

struct NodeInfo {
  std::shared_ptr<const Node> node;
  std::vector<std::shared_ptr<const Pod>> pods;  // bound and not finished
  NodeGpus gpus;
  ResourceVector allocatable;  // less than the node's where GPUs may be cut, see above
  ResourceVector requested;    // sum over pods; counts pods under "pods"
};

class ClusterSnapshot {
 public:
  ClusterSnapshot() = default;
  // Finished pods are left out; pods bound to unknown nodes too; of two objects with one name the
  // later counts. Pods that hold slices mark instances used even when the node's status does not
  // say so yet. The catalogue must outlive it.
  static ClusterSnapshot Build(const std::vector<std::shared_ptr<const Node>>& nodes,
                               const std::vector<std::shared_ptr<const Pod>>& pods,
                               const gpu::Catalogue& catalogue);

  size_t size() const { return size_; }  // nodes
  // What it was built with; of a snapshot that was not, the built-in one.
  const gpu::Catalogue& catalogue() const {
    return catalogue_ == nullptr ? gpu::Catalogue::Builtin() : *catalogue_;
  }
  // Sorted by name. REQUIRES: i < size().
  const NodeInfo& node(size_t i) const { return *(*(*pages_)[i / kPageSize])[i % kPageSize]; }
  const NodeInfo* Find(std::string_view name) const;
  // Adds the pod to the node, which need not have room for it. Free instances are marked used
  // first. Error: kNotFound.
  Status Bind(std::shared_ptr<const Pod> pod, std::string_view node);
  // Replaces the node's GPUs; its allocatable MIG resources become what they hold. Error:
  // kNotFound.
  Status SetGpus(std::string_view node, NodeGpus gpus);

 private:
  // Two levels, so that replacing one node of n copies some sqrt(n) pointers.
  static constexpr size_t kPageSize = 64;
  using Page = std::array<std::shared_ptr<const NodeInfo>, kPageSize>;
  using Pages = std::vector<std::shared_ptr<const Page>>;
  using Index = std::unordered_map<std::string_view, size_t>;  // views into the nodes' names

  std::optional<size_t> IndexOf(std::string_view name) const;
  void Replace(size_t i, NodeInfo info);

  const gpu::Catalogue* catalogue_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const Pages> pages_;
  std::shared_ptr<const Index> index_;
};

}  // namespace nos::cluster
