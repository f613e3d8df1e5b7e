// One consistent picture of the cluster for one decision. A fork costs what it changes.
//
//   ClusterSnapshot next = snapshot;              // shares every node
//   next.Bind(pod, "gpu-7");                      // copies one node (and a page of pointers)
//
// Values: a copy may be changed without the original noticing. Different copies may be used from
// different threads; one copy may not be changed while it is read.
//
// Which pod holds which instance the node's status tells where its agent knows. For the others
// Build assumes: pods in the order of their keys take the instances that the status counts as used,
// then free ones. A pod whose
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

#include "base/function_ref.h"
#include "base/status.h"
#include "cluster/annotations.h"
#include "cluster/host_ports.h"
#include "cluster/objects.h"
#include "cluster/resources.h"
#include "cluster/surroundings.h"
#include "gpu/catalogue.h"

namespace nos::cluster {

struct NodeInfo {
  std::shared_ptr<const Node> node;
  std::vector<std::shared_ptr<const Pod>> pods;  // bound and not finished
  NodeGpus gpus;
  ResourceVector allocatable;  // less than the node's where GPUs may be cut, see above
  ResourceVector requested;    // sum over pods; counts pods under "pods"
  // Sum over pods of what a score takes them to need (ScoredRequests).
  ScoredRequests scored;
  // Those of `pods` with affinity to other pods or anti-affinity, and those of them whose
  // anti-affinity is required: others are of no interest to pods that have none themselves.
  int with_affinity = 0, with_required_anti_affinity = 0;
  HostPorts ports;  // of `pods`; twice when two have the same
};

// Whether nos makes instances of this resource there: slices, on hybrid nodes also whole GPUs.
bool IsCutOn(const NodeInfo& node, ResourceId id);

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
  // The same, as it is now whatever changes later. Null: no such node.
  std::shared_ptr<const NodeInfo> Share(std::string_view name) const;
  // Of node(i); none: no such node.
  std::optional<size_t> IndexOf(std::string_view name) const;
  // What else there is. One copy of the snapshot may change its own without the others noticing.
  const Surroundings& around() const {
    static const Surroundings kNothing;
    return around_ == nullptr ? kNothing : *around_;
  }
  Surroundings& ChangeAround();
  // Grows with each ChangeAround.
  uint64_t around_version() const { return around_version_; }
  // What is around as it is now, whatever changes later. Null when nobody has looked yet (called
  // ChangeAround): then what is not found may well exist.
  std::shared_ptr<const Surroundings> ShareAround() const { return around_; }
  // Puts a node in the place of the one of its name, whose pods it takes over, or beside the
  // others, which costs with the number of nodes unless its name comes after theirs.
  void SetNode(std::shared_ptr<const Node> node);
  // Puts many beside the others at once. REQUIRES: their names are new and differ.
  void AddNodes(const std::vector<std::shared_ptr<const Node>>& nodes);
  // Its pods go with it.
  void RemoveNode(std::string_view name);
  // The same for all others.
  void KeepNodes(FunctionRef<bool(const NodeInfo&)> keep);
  // Takes the pod of this name off the node. Error: kNotFound: no such node, or pod on it.
  Status Unbind(const Pod& pod, std::string_view node);
  // Takes the pod off the node as if it had ended and the node's agent had told so: the instances
  // that it held, which are returned, are free, where Unbind leaves them used until the status says
  // otherwise. Error: kNotFound.
  Result<std::vector<PromisedInstance>> Vacate(const Pod& pod, std::string_view node);
  // Undoes that, while nobody else was bound there. Error: kNotFound.
  Status Return(std::shared_ptr<const Pod> pod, std::string_view node,
                const std::vector<PromisedInstance>& held);
  // Puts a pod in the place of the one of its name on its node. Error: kNotFound.
  Status UpdatePod(std::shared_ptr<const Pod> pod);
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
  std::shared_ptr<Surroundings> around_;
  uint64_t around_version_ = 0;
};

}  // namespace nos::cluster
