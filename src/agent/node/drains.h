// Free instances that are to be destroyed, and the progress of their drain. First the node's
// allocatable stops counting an instance, so that schedulers send no more pods for it. A moment
// later, when the pods sent before have been bound, it may be withdrawn from the kubelet and
// destroyed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/objects.h"

namespace nos::agent {

struct DrainTimes {
  Duration settle{};  // for schedulers that have not seen the node's new allocatable yet
  // For nodes whose allocatable cannot be written: then it is destroyed although it is counted.
  Duration timeout{};
};

class Drains {
 public:
  using Instances = std::map<std::string, std::string>;  // UUID -> resource
  using Counts = std::map<std::string, int64_t>;         // by resource

  explicit Drains(DrainTimes times) : times_(times) {}

  // `unwanted`: free instances to destroy; others are forgotten. `counts`: devices without them.
  // `node`: as last known. An instance that the node counts again starts its drain over.
  void Look(const Instances& unwanted, const Counts& counts, const cluster::Node& node);
  // The same after the node has been written. `refused`: the counts could not be written.
  void OnWritten(const Instances& unwanted, const Counts& counts, const cluster::Node& node,
                 bool refused, Time now);
  bool Drained(const std::string& uuid, Time now) const;
  // Time::max() until the node stops counting it. REQUIRES: the instance is unwanted.
  Time DrainedAt(const std::string& uuid) const;

 private:
  struct Entry {
    std::optional<Time> uncounted;  // since when the node does not count it
    std::optional<Time> refused;    // since when the counts cannot be written
  };
  static bool Counted(const std::string& resource, const Counts& counts, const cluster::Node& node);

  DrainTimes times_;
  std::map<std::string, Entry> entries_;
};

}  // namespace nos::agent
