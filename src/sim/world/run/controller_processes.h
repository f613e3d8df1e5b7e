// The controllers of a virtual cluster as processes, each with a connection of its own to the API
// server: partitioner, scheduler and, if the options have one, autoscaler.
//
//   ControllerProcesses controllers(env, options);
//   controllers.Start(api, false, hooks);
//   for (Process* process : controllers.All()) process->Step();
//
// One thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/world/events/process.h"
#include "sim/world/node/environment.h"
#include "sim/world/node/faulty_transport.h"
#include "sim/world/run/options.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::sim {

class ControllerProcesses {
 public:
  struct Hooks {
    // Called with the body of each binding that the scheduler requests.
    std::function<void(const Json& binding)> on_binding;
    // Called with each request of the autoscaler; an answer replaces the server's.
    FaultyTransport::Intercept intercept_autoscaler;
  };

  // The references must outlive the object.
  ControllerProcesses(const Environment& env, const WorldOptions& options);
  ControllerProcesses(const ControllerProcesses&) = delete;
  ControllerProcesses& operator=(const ControllerProcesses&) = delete;
  ~ControllerProcesses();

  // They reach the API server through `api`. `watch_devices`: they watch the kinds of Dynamic
  // Resource Allocation; each watch takes part in the draws of faults.
  void Start(kube::Transport& api, bool watch_devices, const Hooks& hooks);
  bool started() const { return scheduler_ != nullptr; }

  std::vector<Process*> All() const;
  // "partitioner", "scheduler" or "autoscaler"; null if there is no such process.
  Process* Find(std::string_view name) const;
  // Null before Start and while the process is down.
  const controllers::Partitioner* partitioner() const;
  const controllers::Scheduler* scheduler() const;
  const controllers::Autoscaler* autoscaler() const;
  // The partitioner's framework.
  const scheduling::Framework& framework() const { return *framework_; }

 private:
  // A controller with its own connection to the API server.
  struct Connected;

  std::unique_ptr<reconcile::Reconciler> MakeScheduler() const;
  void StartAutoscaler(kube::Transport& api, bool watch_devices, const Hooks& hooks);

  Environment env_;
  const WorldOptions& options_;
  // The partitioner uses the first, the scheduler the second. The third partitions GPUs if needed.
  const std::unique_ptr<const scheduling::Framework> framework_, scheduler_framework_,
      partitioning_framework_;
  std::unique_ptr<Connected> partitioner_, scheduler_, autoscaler_;
};

}  // namespace nos::sim
