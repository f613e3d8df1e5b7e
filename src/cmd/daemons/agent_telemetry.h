// The agent's telemetry as it runs: looks at the GPUs every few seconds, shows what they measure on
// /metrics, and delivers it to a telemetry server if one is configured.
//
// A thread of its own looks and appends to what is to be delivered, so that nothing here keeps the
// agent waiting but the driver.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bell.h"
#include "base/metrics.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/delivery.h"
#include "kube/http_transport.h"
#include "kubelet/pod_resources_client.h"
#include "telemetry/gpu_metrics.h"
#include "telemetry/sampler.h"

namespace nos::cmd {

struct AgentTelemetryConfig {
  DeliveryConfig delivery;
  Duration interval = std::chrono::seconds(10);
  bool gpu_metrics = true;
  std::string dcgm_url;
};
void DescribeAgentTelemetry(ConfigFields& fields, AgentTelemetryConfig& config);

// What the driver has reported since it was last asked for. Thread-safe.
class XidLog {
 public:
  void Add(telemetry::XidEvent event);
  std::vector<telemetry::XidEvent> Take();

 private:
  std::mutex mutex_;
  std::vector<telemetry::XidEvent> events_;  // guarded by mutex_; bounded, the first ones stay
};

// How busy a DCGM exporter says the GPUs are; asked of `url`. Thread-safe.
class DcgmScraper {
 public:
  // `url`: "http://HOST:PORT/PATH". Error: kInvalid.
  static Result<std::unique_ptr<DcgmScraper>> For(const std::string& url);
  // Fills in what is unmeasured. Error: kUnavailable, kDeadline; the sample is as it was.
  Status Fill(telemetry::NodeSample& sample);

 private:
  DcgmScraper(kube::ConnectionConfig to, std::string path);

  const std::string path_;
  kube::HttpTransport transport_;
};

// What it looks at. All must outlive it.
struct AgentSources {
  std::string node;
  device::Backend& backend;  // shared with others
  kubelet::PodResources& pod_resources;
  const gpu::Catalogue& catalogue;
  const device::HealthBoard& health;
  XidLog& xids;
  Metrics& metrics;
  telemetry::Sharing sharing{};
};

class AgentTelemetry {
 public:
  // Error: kInvalid (configuration). A spool that cannot be opened is logged and tried again at
  // each look: nothing here is to keep the agent from its work.
  static Result<std::unique_ptr<AgentTelemetry>> Start(const AgentTelemetryConfig& config,
                                                       const AgentSources& sources);
  // Waits for a request under way, at most its time-out. What is not sent is on disk.
  ~AgentTelemetry();
  AgentTelemetry(const AgentTelemetry&) = delete;
  AgentTelemetry& operator=(const AgentTelemetry&) = delete;

 private:
  AgentTelemetry(const AgentTelemetryConfig& config, const AgentSources& sources);
  void LookAgainAndAgain();
  Status Look();

  const AgentTelemetryConfig config_;
  const AgentSources sources_;
  telemetry::Sampler sampler_;
  telemetry::GpuMetrics gpu_metrics_;
  std::unique_ptr<DcgmScraper> dcgm_;
  std::unique_ptr<Delivery> delivery_;  // null: nothing is delivered
  std::atomic<bool> stop_ = false;
  Bell look_bell_;
  std::thread looking_;
};

}  // namespace nos::cmd
