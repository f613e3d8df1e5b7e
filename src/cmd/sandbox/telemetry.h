// Telemetry of the sandbox: records that agents and the collector of a real cluster would send go
// to a server in this process, which serves the dashboard on this machine.
//
//   NOS_ASSIGN(const auto telemetry, SandboxTelemetry::Start(world, 0, false, "."));
//   Say(telemetry->Url());
//   options.on_tick = [&](double) { telemetry->Tick(); };
//
// Uses the world's clock. The store is in its own temporary folder, removed at the end. Only the
// world's thread may call it.
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

#include "cmd/sandbox/latest_decisions.h"
#include "cmd/telemetry/server.h"
#include "controllers/collector.h"
#include "controllers/operator.h"
#include "reconcile/runner.h"
#include "sim/world.h"
#include "telemetryreporter/sampler.h"

namespace nos::cmd {

class SandboxTelemetry {
 public:
  // Serves when it returns; `port` 0 uses a free port; `published` as in TelemetryServerConfig, on
  // every address. The store is in `folder` if the system has
  // no temporary folder. Errors: see TelemetryServer::Start; kUnavailable: no folder for the store.
  static Result<std::unique_ptr<SandboxTelemetry>> Start(sim::World& world, uint16_t port,
                                                         bool published, const std::string& folder);
  ~SandboxTelemetry();
  SandboxTelemetry(const SandboxTelemetry&) = delete;
  SandboxTelemetry& operator=(const SandboxTelemetry&) = delete;

  std::string Url() const;
  // Reports changes since the last call, and samples GPUs when a measurement is due. Also updates
  // the status of elastic quotas, as nos operator does.
  void Tick();
  // Decision records of the collector, each as it was reported last.
  std::vector<Json> Decisions() const { return decisions_.All(); }

 private:
  struct Batch {
    std::string source;
    std::vector<std::string> records;
    Time at{};
  };
  class Folder;

  explicit SandboxTelemetry(sim::World& world);
  Status Open(uint16_t port, bool published, const std::string& folder);
  void Measure();
  void Send(Batch batch);
  void Deliver();  // runs on thread_
  void Take(const Batch& batch);

  sim::World& world_;
  std::unique_ptr<Folder> folder_;
  Metrics metrics_;
  std::unique_ptr<TelemetryServer> server_;
  LatestDecisions decisions_;
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
  std::map<std::string, uint64_t> sequences_;  // by source; used by thread_ only
  std::thread thread_;                         // last: uses the other members
};

}  // namespace nos::cmd
