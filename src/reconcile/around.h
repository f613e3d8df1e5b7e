// Caches of what surrounds pods and nodes (cluster/surroundings.h), and what has changed in them.
//
//   AroundCaches around({});
//   around.Pump(client, now);
//   for (const AroundChange& change : around.Take()) change.apply(surroundings);
//
// What an API server does not know (PodGroups without their definition, Workloads before their
// version) counts as none. One owner thread.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/surroundings.h"
#include "kube/cache.h"

namespace nos::reconcile {

struct AroundChange {
  std::string_view kind;   // "PersistentVolumeClaim"
  std::any before, after;  // as ClusterEvent has them; empty where there is none
  std::function<void(cluster::Surroundings&)> apply;
};

class AroundCaches {
 public:
  // Of these kinds ("PodGroup") alone; of all if there are none.
  explicit AroundCaches(const kube::ReflectorOptions& options,
                        const std::vector<std::string_view>& kinds = {});
  ~AroundCaches();

  // Returns whether anything changed.
  bool Pump(kube::Client& client, Time now);
  bool synced() const;
  // Grows with each change.
  uint64_t Version() const;
  Time NextDue() const;
  // Why one of them could not be read last, or OK.
  Status ReadError() const;
  // Of a kind: key -> why the object could not be read.
  std::map<std::string, std::string> Problems(std::string_view kind) const;
  // What has changed since it was last taken.
  std::vector<AroundChange> Take();
  // All there is.
  cluster::Surroundings Collect() const;

 private:
  class Watched;
  template <typename T>
  class WatchedTable;
  template <typename T>
  void Watch(const kube::ReflectorOptions& options, kube::Resource resource,
             Status (*read)(JsonSource, T&), cluster::Table<T> cluster::Surroundings::* table);

  std::vector<std::unique_ptr<Watched>> caches_;
  std::vector<AroundChange> changes_;
};

}  // namespace nos::reconcile
