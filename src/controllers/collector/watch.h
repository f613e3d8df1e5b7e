// Watches what the collector tells of beside pods, nodes and quotas, and what nothing depends on:
// Jobs, node pools, Kueue's queues and Workloads, Events. What an API server does not serve or does
// not permit is not there: that it is not permitted is logged once. Objects are read as they pass
// by and not kept here.
//
//   WorkWatch watch({.take_job = [&](const cluster::Job& job) { return jobs.Put(job); }, ...}, {});
//   watch.Pump(client, now);
//
// One owner thread.
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

// Who hears of objects that are new or have changed, and of those that are gone.
struct WorkSink {
  // Whether to hear of it when it is gone.
  std::function<bool(const cluster::Job&)> take_job;
  std::function<bool(const cluster::KueueWorkload&)> take_workload;
  std::function<bool(const cluster::KueueQueue&)> take_queue;
  std::function<bool(const cluster::NodePool&)> take_pool;
  // Events are not told to be gone: they are forgotten after an hour. Null: none are watched.
  std::function<void(const cluster::KubernetesEvent&)> take_event;
  // `kind`: "Job", "Workload", "Queue" or "NodePool".
  std::function<void(std::string_view kind, std::string_view ns, std::string_view name)> gone;
};

struct WorkWatchOptions {
  Duration relist_every = std::chrono::minutes(10);
  // Called from any thread when a Pump would find something.
  std::function<void()> wake{};
};

class WorkWatch {
 public:
  WorkWatch(WorkSink sink, WorkWatchOptions options);
  ~WorkWatch();

  void Pump(kube::Client& client, Time now);
  // All has been listed that is served and permitted.
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
  std::string kueue_version_;  // "": it is not served
  Time kueue_due_{};
  bool kueue_known_ = false;  // whether it is served
};

}  // namespace nos::controllers
