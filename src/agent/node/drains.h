// Free instances that are to go, and how far each is on its way out. The node's allocatable stops
// counting it first, so that schedulers send no more pods for it; a moment later, when the pods
// that were sent before have been bound, it may be taken from the kubelet and destroyed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/objects.h"

namespace nos::agent {

struct DrainTimes {
  Duration settle{};   // for schedulers that have not seen the node's new figure yet
  Duration timeout{};  // then it goes although the node counts it, if that cannot be changed
};

class Drains {
 public:
  using Instances = std::map<std::string, std::string>;  // UUID -> resource
  using Counts = std::map<std::string, int64_t>;         // by resource

  explicit Drains(DrainTimes times) : times_(times) {}

  // `unwanted`: free instances that are to go; others are forgotten.
  // `counts`: devices without them. `node`: as it is, as far as is known. Whatever it
  // counts drains anew.
  void Look(const Instances& unwanted, const Counts& counts, const cluster::Node& node);
  // The same once the node has been told; `refused`: it was forbidden to write the counts.
  void Told(const Instances& unwanted, const Counts& counts, const cluster::Node& node,
            bool refused, Time now);
  bool Drained(const std::string& uuid, Time now) const;
  // Time::max(): when the node stops counting it. REQUIRES: it is one of the unwanted.
  Time DrainedAt(const std::string& uuid) const;

 private:
  struct Entry {
    std::optional<Time> uncounted;  // since when the node does not count it
    std::optional<Time> refused;    // since when the node cannot be told
  };
  static bool Counted(const std::string& resource, const Counts& counts, const cluster::Node& node);

  DrainTimes times_;
  std::map<std::string, Entry> entries_;
};

}  // namespace nos::agent
