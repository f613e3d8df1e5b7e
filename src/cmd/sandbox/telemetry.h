// The sandbox's telemetry: what a cluster's agents and collector would report goes to a server in
// this process, whose dashboard is open on this machine.
//
//   NOS_ASSIGN(const auto telemetry, SandboxTelemetry::Start(world, 0, "."));
//   Say(telemetry->Url());
//   options.on_tick = [&](double) { telemetry->Tick(); };
//
// It goes by the world's time. The store lies in a folder of its own, which is removed at the end.
// The world's thread alone calls it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cmd/telemetry/server.h"
#include "controllers/collector.h"
#include "controllers/operator.h"
#include "reconcile/runner.h"
#include "sim/world.h"
#include "telemetry/sampler.h"

namespace nos::cmd {

class SandboxTelemetry {
 public:
  // Serves when it returns; `port` 0: any free one. The store is in `folder` where there is none
  // for what is temporary. Errors: as TelemetryServer::Start; kUnavailable: no folder for the
  // store.
  static Result<std::unique_ptr<SandboxTelemetry>> Start(sim::World& world, uint16_t port,
                                                         const std::string& folder);
  ~SandboxTelemetry();
  SandboxTelemetry(const SandboxTelemetry&) = delete;
  SandboxTelemetry& operator=(const SandboxTelemetry&) = delete;

  std::string Url() const;
  // Reports what has happened, and what is measured if it is time to. Elastic quotas get their
  // status, as by nos operator.
  void Tick();

 private:
  struct Batch {
    std::string source;
    std::vector<std::string> records;
    Time at{};
  };
  class Folder;

  explicit SandboxTelemetry(sim::World& world);
  Status Open(uint16_t port, const std::string& folder);
  void Measure();
  void Send(Batch batch);
  void Deliver();  // the thread
  void Take(const Batch& batch);

  sim::World& world_;
  std::unique_ptr<Folder> folder_;
  Metrics metrics_;
  std::unique_ptr<TelemetryServer> server_;
  controllers::Collector collector_;
  controllers::Operator operator_;
  std::unique_ptr<reconcile::Runner> collecting_, operating_;
  std::map<std::string, telemetry::Sampler> samplers_;  // by node
  Duration measure_every_{};
  Time measured_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  bool stop_ = false;
  std::map<std::string, uint64_t> sequences_;  // by source; the thread's
  std::thread thread_;                         // last: uses the others
};

}  // namespace nos::cmd
