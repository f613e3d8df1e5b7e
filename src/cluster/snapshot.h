// A consistent snapshot of the cluster for one decision. A fork costs in proportion to its changes.
//
//   ClusterSnapshot next = snapshot;              // shares every node
//   next.Bind(pod, "gpu-7");                      // copies one node (and a page of pointers)
//
// Value semantics: changing a copy does not affect the original. Different copies may be used from
// different threads; a copy must not be changed while another thread reads it.
//
// The node's status records which pod holds which instance, as far as its agent knows. For other
// pods Build assumes instances: pods in the order of their keys take instances that the status
// counts as used, then free ones. If the status shows no instance for a pod, one is assumed where
// the spec requests it, or else anywhere legal, in place of free instances if necessary. If that
// fails too, an entry of `problems` says so.
//
// The status does not show which GPUs are allocated whole (nvidia.com/gpu). A GPU with instances is
// not, but any other may be: an agent reports a free GPU with MIG mode off as empty, too. While
// pods hold whole GPUs, the GPUs of their node that no agent reports are left out of `gpus`; if
// these are fewer than the pods hold, the reported GPUs without instances are fixed. `allocatable`
// does not count GPUs without instances that may be repartitioned as whole GPUs.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "cluster/annotations.h"
#include "cluster/context.h"
#include "cluster/host_ports.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

struct NodeInfo {
  std::shared_ptr<const Node> node;
  std::vector<std::shared_ptr<const Pod>> pods;  // bound and not finished
  NodeGpus gpus;
  ResourceVector allocatable;  // less than the node's if GPUs may be repartitioned, see above
  ResourceVector requested;    // sum over pods; counts the pods under "pods"
  // Sum over pods of the requests that count for scores (ScoredRequests).
  ScoredRequests scored;
  // The number of `pods` with inter-pod affinity or anti-affinity, and of those with required
  // anti-affinity. Other pods do not matter to pods without such terms of their own.
  int with_affinity = 0, with_required_anti_affinity = 0;
  HostPorts ports;  // of `pods`; a port that two pods have is listed twice
};

// True if nos creates instances of this resource on the node: slices, and on hybrid nodes whole
// GPUs.
bool IsManagedOn(const NodeInfo& node, ResourceId id);

class ClusterSnapshot {
 public:
  ClusterSnapshot() = default;
  // Leaves out finished pods and pods bound to unknown nodes. If two objects have the same name,
  // the later one counts. Instances of pods that hold slices are used even if the node's status
  // does not say so yet. The catalogue must outlive the snapshot.
  static ClusterSnapshot Build(const std::vector<std::shared_ptr<const Node>>& nodes,
                               const std::vector<std::shared_ptr<const Pod>>& pods,
                               const gpu::Catalogue& catalogue);

  size_t size() const { return size_; }  // number of nodes
  // The catalogue passed to Build; the built-in one for a default-constructed snapshot.
  const gpu::Catalogue& catalogue() const {
    return catalogue_ == nullptr ? gpu::Catalogue::Builtin() : *catalogue_;
  }
  // Sorted by name. REQUIRES: i < size().
  const NodeInfo& node(size_t i) const { return *(*(*pages_)[i / kPageSize])[i % kPageSize]; }
  const NodeInfo* Find(std::string_view name) const;
  // The node as an immutable value that later changes do not affect. Null if the node is unknown.
  std::shared_ptr<const NodeInfo> Share(std::string_view name) const;
  // The index for node(i); nullopt if the node is unknown.
  std::optional<size_t> IndexOf(std::string_view name) const;
  // The cluster context. Each copy of the snapshot changes its own context.
  const ClusterContext& context() const {
    static const ClusterContext kNothing;
    return context_ == nullptr ? kNothing : *context_;
  }
  // `counts` false: no decision depends on the change, or only those on nodes that the caller
  // knows.
  ClusterContext& ChangeContext(bool counts = true);
  // Grows with each change that counts.
  uint64_t context_version() const { return context_version_; }
  // The cluster context as an immutable value. Null if ChangeContext was never called: then an
  // object that is not found may still exist.
  std::shared_ptr<const ClusterContext> ShareContext() const { return context_; }
  // Replaces the node of the same name and keeps its pods, or adds the node. Adding costs time
  // linear in the number of nodes, unless the name sorts after all others.
  void SetNode(std::shared_ptr<const Node> node);
  // Adds many nodes at once. REQUIRES: their names are new and distinct.
  void AddNodes(const std::vector<std::shared_ptr<const Node>>& nodes);
  // Removes the node and its pods.
  void RemoveNode(std::string_view name);
  // Removes all other nodes and their pods.
  void KeepNodes(FunctionRef<bool(const NodeInfo&)> keep);
  // Removes the pod of this name from the node. Error: kNotFound: the node does not exist or does
  // not have the pod.
  Status Unbind(const Pod& pod, std::string_view node);
  // Removes the pod as if it had ended and the node's agent had reported that: the instances that
  // it held become free and are returned. After Unbind they stay used until the status says
  // otherwise. Error: kNotFound.
  Result<std::vector<PromisedInstance>> Vacate(const Pod& pod, std::string_view node);
  // Undoes Vacate, provided that no other pod was bound to the node in between. Error: kNotFound.
  Status Return(std::shared_ptr<const Pod> pod, std::string_view node,
                const std::vector<PromisedInstance>& held);
  // Replaces the pod of the same name on its node. Error: kNotFound.
  Status UpdatePod(std::shared_ptr<const Pod> pod);
  // Adds the pod to the node, without checking capacity. It takes free instances first. Error:
  // kNotFound.
  Status Bind(std::shared_ptr<const Pod> pod, std::string_view node);
  // Replaces the node's GPUs; its allocatable slices become the instances of these GPUs. Error:
  // kNotFound.
  Status SetGpus(std::string_view node, NodeGpus gpus);

 private:
  // Two levels, so that replacing one of n nodes copies one page and the list of pages, not n
  // pointers.
  static constexpr size_t kPageSize = 64;
  using Page = std::array<std::shared_ptr<const NodeInfo>, kPageSize>;
  using Pages = std::vector<std::shared_ptr<Page>>;
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  using Index = std::unordered_map<std::string, size_t, NameHash, std::equal_to<>>;

  void Replace(size_t i, NodeInfo info);
  std::shared_ptr<const NodeInfo>& OwnPlace(size_t i);
  void Append(std::shared_ptr<const NodeInfo> info);
  void Arrange(std::vector<std::shared_ptr<const NodeInfo>> infos);
  std::vector<std::shared_ptr<const NodeInfo>> Infos() const;

  const gpu::Catalogue* catalogue_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<Pages> pages_;
  std::shared_ptr<Index> index_;
  std::shared_ptr<ClusterContext> context_;
  uint64_t context_version_ = 0;
};

}  // namespace nos::cluster
