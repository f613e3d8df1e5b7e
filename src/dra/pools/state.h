// One pool: its slices, by generation, and the use of its devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/objects.h"
#include "dra/pools/generation.h"
#include "dra/pools/node_view.h"

namespace nos::dra {

// True if the selection includes the node.
bool Includes(const NodeSelection& selection, const cluster::Node& node);

class Pool {
 public:
  Pool(PoolId id, const Features& features, const std::vector<DeviceTaintRule>& rules)
      : id_(std::move(id)), features_(features), rules_(rules) {}

  // Each change of slices or rules ends all views of the pool.
  void Put(SlicePointer slice);
  void Remove(const std::string& slice);
  void RulesChanged() { generations_.clear(); }
  bool empty() const { return slices_.empty() && use_.empty(); }
  const std::map<std::string, SlicePointer>& slices() const { return slices_; }

  void Take(const AllocatedDevice& device);
  void Give(const AllocatedDevice& device);

  // Appends the part of the pool that the node can use to `view`. Returns true if a slice of the
  // part has binding conditions; nothing if the node cannot use the pool.
  struct Part {
    PoolView view;
    std::vector<uint32_t> devices;
    bool binding_conditions = false;
  };
  std::optional<Part> For(const cluster::Node& node);

 private:
  std::vector<SlicePointer> Relevant(const cluster::Node& node) const;
  bool IsRelevant(const ResourceSlice& slice, const cluster::Node& node) const;
  const Generation& At(int64_t generation);
  void CollectDevices(const Generation& generation, const std::vector<SlicePointer>& relevant,
                      const cluster::Node& node, Part& part) const;
  void Change(const AllocatedDevice& device, bool take);
  // Notes the counters of a device before its slice may go.
  void Remember(const Name& device, DeviceUse& use) const;

  PoolId id_;
  const Features& features_;
  const std::vector<DeviceTaintRule>& rules_;
  std::map<std::string, SlicePointer> slices_;
  PoolUse use_;
  std::map<int64_t, std::unique_ptr<Generation>> generations_;
};

}  // namespace nos::dra
