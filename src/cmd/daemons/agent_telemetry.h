// Telemetry loop of the agent: samples the GPUs every few seconds, exports the samples on /metrics,
// and delivers them to a telemetry server if one is configured.
//
// Its own thread samples and appends to the spool. The agent's main loop therefore shares only the
// driver with it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/wake_signal.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/delivery.h"
#include "kube/http_transport.h"
#include "kubelet/pod_resources_client.h"
#include "telemetryreporter/gpu_metrics.h"
#include "telemetryreporter/sampler.h"

namespace nos::cmd {

struct AgentTelemetryConfig {
  DeliveryConfig delivery;
  Duration interval = std::chrono::seconds(10);
  bool gpu_metrics = true;
  std::string dcgm_url;
};
void DescribeAgentTelemetry(ConfigFields& fields, AgentTelemetryConfig& config);

// XID events reported by the driver since the last Take. Thread-safe.
class XidLog {
 public:
  void Add(telemetry::XidEvent event);
  std::vector<telemetry::XidEvent> Take();

 private:
  std::mutex mutex_;
  std::vector<telemetry::XidEvent> events_;  // guarded by mutex_; bounded, the oldest stay
};

// Reads GPU utilization from the DCGM exporter at `url`. Thread-safe.
class DcgmScraper {
 public:
  // `url`: "http://HOST:PORT/PATH". Error: kInvalid.
  static Result<std::unique_ptr<DcgmScraper>> For(const std::string& url);
  // Fills in values that the driver did not measure. Errors: kUnavailable, kDeadline; the sample is
  // then unchanged.
  Status Fill(telemetry::NodeSample& sample);

 private:
  DcgmScraper(kube::ConnectionConfig to, std::string path);

  const std::string path_;
  kube::HttpTransport transport_;
};

// Inputs of the samples. All must outlive AgentTelemetry.
struct AgentSources {
  std::string node;
  device::Backend& backend;  // shared with other threads
  kubelet::PodResources& pod_resources;
  const gpu::Catalogue& catalogue;
  const device::GpuHealth& health;
  XidLog& xids;
  Metrics& metrics;
  telemetry::NodeSettings settings{};
};

class AgentTelemetry {
 public:
  // Error: kInvalid (configuration). A spool that fails to open is logged and opened again at each
  // sample, so that telemetry never stops the agent.
  static Result<std::unique_ptr<AgentTelemetry>> Start(const AgentTelemetryConfig& config,
                                                       const AgentSources& sources);
  // Waits for a request in flight, at most until its timeout. Unsent records stay on disk.
  ~AgentTelemetry();
  AgentTelemetry(const AgentTelemetry&) = delete;
  AgentTelemetry& operator=(const AgentTelemetry&) = delete;

 private:
  AgentTelemetry(const AgentTelemetryConfig& config, const AgentSources& sources);
  void SampleUntilStopped();
  Status Look();

  const AgentTelemetryConfig config_;
  const AgentSources sources_;
  telemetry::Sampler sampler_;
  telemetry::GpuMetrics gpu_metrics_;
  std::unique_ptr<DcgmScraper> dcgm_;
  std::unique_ptr<Delivery> delivery_;  // null: no delivery
  std::atomic<bool> stop_ = false;
  WakeSignal look_bell_;
  std::thread looking_;
};

}  // namespace nos::cmd
