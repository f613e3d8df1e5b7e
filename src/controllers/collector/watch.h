// Watches objects that the collector reports besides pods, nodes and quotas: Jobs, node pools,
// Kueue's queues and Workloads, Events. No other part of nos depends on them. A kind that the API
// server does not serve or does not permit is treated as empty; a missing permission is logged
// once. Objects are passed to the sink and not stored here.
//
//   WorkWatch watch({.take_job = [&](const cluster::Job& job) { return jobs.Put(job); }, ...}, {});
//   watch.Pump(client, now);
//
// Owned by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/node_pool.h"
#include "cluster/work.h"
#include "kube/client.h"

namespace nos::controllers {

// Callbacks for new, changed and deleted objects.
struct WorkSink {
  // Each returns true if `gone` should be called when the object is deleted.
  std::function<bool(const cluster::Job&)> take_job;
  std::function<bool(const cluster::KueueWorkload&)> take_workload;
  std::function<bool(const cluster::KueueQueue&)> take_queue;
  std::function<bool(const cluster::NodePool&)> take_pool;
  // `gone` is not called for Events: the API server drops them after an hour. Null: Events are not
  // watched.
  std::function<void(const cluster::KubernetesEvent&)> take_event;
  // `kind`: "Job", "Workload", "Queue" or "NodePool".
  std::function<void(std::string_view kind, std::string_view ns, std::string_view name)> gone;
};

struct WorkWatchOptions {
  Duration relist_every = std::chrono::minutes(10);
  // Called from any thread when Pump has something to process.
  std::function<void()> wake{};
};

class WorkWatch {
 public:
  WorkWatch(WorkSink sink, WorkWatchOptions options);
  ~WorkWatch();

  void Pump(kube::Client& client, Time now);
  // True if all kinds that are served and permitted have been listed.
  bool settled() const;

 private:
  class Watched;
  template <typename T>
  class Follower;

  void LookForKueue(kube::Client& client, Time now);
  template <typename T, typename Take>
  std::unique_ptr<Watched> Follow(kube::Resource resource, Status (*read)(JsonSource, T&),
                                  std::string_view kind, Take take) const;

  const WorkSink sink_;
  const WorkWatchOptions options_;
  std::vector<std::unique_ptr<Watched>> always_, kueue_;
  std::string kueue_version_;  // "": not served
  Time kueue_due_{};
  bool kueue_known_ = false;  // it is known whether Kueue is served
};

}  // namespace nos::controllers
