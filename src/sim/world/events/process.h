// A controller as a process of its own: a reconciler with its caches and connections. A crash
// destroys them together; a restart creates them from scratch.
//
//   Process process("scheduler", make, transport, options, life, clock, log);
//   while (process.Step()) {}                         // all work at the current time
//   process.Crash();                                  // drops all state; restarts 3 s later
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "reconcile/runner.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/faults.h"
#include "sim/world/events/log.h"

namespace nos::sim {

class Process final : public Actor {
 public:
  using Make = std::function<std::unique_ptr<reconcile::Reconciler>()>;

  // Starts at the first step. `life` is shared with the process's transport and devices.
  Process(std::string name, Make make, kube::Transport& transport, reconcile::RunnerOptions options,
          Life& life, const Clock& clock, EventLog& log)
      : name_(std::move(name)),
        make_(std::move(make)),
        transport_(transport),
        options_(std::move(options)),
        life_(life),
        clock_(clock),
        log_(log) {}

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;

  // Dies now and restarts after `down`.
  void Crash(Duration down = std::chrono::seconds(3));
  // Simulates work of this duration: the process does nothing else during it.
  void Spend(Duration time);

  // Time of the last start, or of the next one while it is down.
  Time started() const { return start_at_; }
  // Null while it is down.
  const reconcile::Reconciler* reconciler() const { return reconciler_.get(); }
  const reconcile::Runner* runner() const { return runner_.get(); }

 private:
  void Start();
  void Bury(Duration down);

  std::string name_;
  Make make_;
  kube::Transport& transport_;
  reconcile::RunnerOptions options_;
  Life& life_;
  const Clock& clock_;
  EventLog& log_;
  std::unique_ptr<reconcile::Reconciler> reconciler_;
  std::unique_ptr<reconcile::Runner> runner_;
  Time start_at_{}, busy_until_{};
};

}  // namespace nos::sim
