#include "cmd/daemons/agent_telemetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "telemetryreporter/dcgm_text.h"

namespace nos::cmd {
namespace {

constexpr size_t kMaxXids = 1000;
constexpr size_t kMaxScrapeBytes = size_t{8} << 20;
constexpr Duration kScrapeTimeout = std::chrono::seconds(3);

}  // namespace

void DescribeAgentTelemetry(ConfigFields& f, AgentTelemetryConfig& c) {
  DescribeDelivery(f, c.delivery);
  f.Seconds("intervalSeconds", c.interval, std::chrono::seconds(1), std::chrono::hours(1),
            "Interval of GPU samples.");
  f.Flag("gpuMetrics", c.gpu_metrics,
         "Export GPU samples on /metrics, under the names of the DCGM exporter.");
  f.Text("dcgmUrl", c.dcgm_url,
         "URL of the DCGM exporter of this node (http://localhost:9400/metrics), for the "
         "utilization of MIG devices that the driver does not report. Empty: no exporter is used.");
}

void XidLog::Add(telemetry::XidEvent event) {
  const std::scoped_lock lock(mutex_);
  if (events_.size() < kMaxXids) events_.push_back(std::move(event));
}

std::vector<telemetry::XidEvent> XidLog::Take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(events_, {});
}

Result<std::unique_ptr<DcgmScraper>> DcgmScraper::For(const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return Invalid("telemetry.dcgmUrl: must begin with http://");
  }
  kube::ConnectionConfig to;
  const size_t path = url.find('/', url.find("://") + 3);
  to.server = url.substr(0, path);
  return std::unique_ptr<DcgmScraper>(
      new DcgmScraper(std::move(to), path == std::string::npos ? "/metrics" : url.substr(path)));
}

DcgmScraper::DcgmScraper(kube::ConnectionConfig to, std::string path)
    : path_(std::move(path)),
      transport_(std::move(to), {.timeout = kScrapeTimeout, .max_answer_bytes = kMaxScrapeBytes}) {}

Status DcgmScraper::Fill(telemetry::NodeSample& sample) {
  kube::ApiRequest request;
  request.method = "GET";
  request.path = path_;
  request.accept = "text/plain";
  NOS_ASSIGN(const kube::ApiResponse response, transport_.Do(request));
  if (response.code != 200) {
    return {Code::kUnavailable, fmt::format("the exporter answered {}", response.code)};
  }
  telemetry::FillUtilization(telemetry::ReadDcgmText(response.text), sample);
  return Status::Ok();
}

Result<std::unique_ptr<AgentTelemetry>> AgentTelemetry::Start(const AgentTelemetryConfig& config,
                                                              const AgentSources& sources) {
  std::unique_ptr<AgentTelemetry> self(new AgentTelemetry(config, sources));
  if (!config.dcgm_url.empty()) {
    NOS_ASSIGN(self->dcgm_, DcgmScraper::For(config.dcgm_url));
  }
  if (!config.delivery.endpoint.empty()) {
    NOS_ASSIGN(self->delivery_,
               Delivery::For(config.delivery, "node/" + sources.node, sources.metrics));
  }
  if (self->delivery_ || config.gpu_metrics) {
    self->looking_ = std::thread([it = self.get()] { it->SampleUntilStopped(); });
  }
  return self;
}

AgentTelemetry::AgentTelemetry(const AgentTelemetryConfig& config, const AgentSources& sources)
    : config_(config), sources_(sources), gpu_metrics_(sources.metrics) {}

AgentTelemetry::~AgentTelemetry() {
  stop_ = true;
  look_bell_.Ring();
  if (looking_.joinable()) looking_.join();
}

void AgentTelemetry::SampleUntilStopped() {
  const SteadyClock clock;
  Time next = clock.Now();
  std::string trouble;
  while (!stop_) {
    const Status looked = Look();
    if (!looked.ok() && looked.message() != trouble) {
      Log(LogLevel::kWarn, "failed to sample GPUs completely or to store the sample",
          {{"error", looked.message()}});
    }
    trouble = looked.message();
    // Even intervals; a missed sample is not made up for.
    next = std::max(next + config_.interval, clock.Now());
    look_bell_.Wait(next - clock.Now());
  }
}

Status AgentTelemetry::Look() {
  NOS_ASSIGN(telemetry::NodeSample sample,
             telemetry::TakeSample(sources_.node, sources_.backend, sources_.pod_resources,
                                   sources_.catalogue, &sources_.health, sources_.settings));
  Status worst = sample.holders_status;
  if (dcgm_) {
    if (const Status filled = dcgm_->Fill(sample); !filled.ok()) {
      worst = filled.Within("DCGM exporter (telemetry.dcgmUrl)");
    }
  }
  const std::vector<telemetry::XidEvent> xids = sources_.xids.Take();
  if (config_.gpu_metrics) gpu_metrics_.Show(sample, xids);
  if (!delivery_) return worst;
  if (const Status opened = delivery_->Open(); !opened.ok()) {
    for (const telemetry::XidEvent& event : xids)
      sources_.xids.Add(event);  // kept for the next sample
    return opened.Within("telemetry spool");
  }
  const Time now = SystemClock().Now();
  if (const Status kept = delivery_->Add(sampler_.Records(sample, xids, now)); !kept.ok()) {
    worst = kept.Within("telemetry spool");
  }
  return worst;
}

}  // namespace nos::cmd
