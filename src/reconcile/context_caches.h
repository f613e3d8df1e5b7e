// Caches of the cluster context (cluster/context.h: volumes, budgets, classes and other
// objects), and the changes in them.
//
//   ContextCaches caches({});
//   caches.Pump(client, now);
//   for (const ContextChange& change : caches.Take()) change.apply(context);
//
// A kind that the API server does not serve (PodGroups without their CRD, Workloads of a newer
// version) counts as empty. Owned by one thread.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/context.h"
#include "kube/cache.h"

namespace nos::reconcile {

struct ContextChange {
  std::string_view kind;   // "PersistentVolumeClaim"
  std::string key;         // "ns/name", or "name"
  std::any before, after;  // typed as in ClusterEvent; empty if the object does not exist
  std::function<void(cluster::ClusterContext&)> apply;
};

class ContextCaches {
 public:
  // Watches only these kinds ("PodGroup"); an empty list means all kinds, those of resource.k8s.io
  // only with `devices`.
  explicit ContextCaches(const kube::ReflectorOptions& options,
                         const std::vector<std::string_view>& kinds = {}, bool devices = true);
  ~ContextCaches();

  // Returns true if anything changed.
  bool Pump(kube::Client& client, Time now);
  bool synced() const;
  // Increases with each change.
  uint64_t Version() const;
  Time NextDue() const;
  // The error of the last failed list or watch, or OK.
  Status ReadError() const;
  // For one kind: key -> reason why the object could not be decoded.
  std::map<std::string, std::string> Problems(std::string_view kind) const;
  // The changes since the last call of Take.
  std::vector<ContextChange> Take();
  // A copy of the whole cluster context.
  cluster::ClusterContext Collect() const;

 private:
  class Watched;
  template <typename T>
  class WatchedTable;
  template <typename T>
  void Watch(const kube::ReflectorOptions& options, kube::Resource resource,
             Status (*read)(JsonSource, T&), cluster::Table<T> cluster::ClusterContext::* table);

  std::vector<std::unique_ptr<Watched>> caches_;
  std::vector<ContextChange> changes_;
};

}  // namespace nos::reconcile
