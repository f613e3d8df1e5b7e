#include "cmd/agent_telemetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "net/loopback.h"
#include "telemetry/dcgm_text.h"

namespace nos::cmd {
namespace {

constexpr MetricFamily kWaiting{
    MetricFamily::Kind::kGauge, "nos_telemetry_spool_envelopes",
    "Envelopes on disk that the telemetry server has not acknowledged since the look before."};
constexpr MetricFamily kBytes{MetricFamily::Kind::kGauge, "nos_telemetry_spool_bytes",
                              "What they take on disk."};
constexpr MetricFamily kLost{
    MetricFamily::Kind::kCounter, "nos_telemetry_lost_records_total",
    "Records dropped since the start: the spool was full, the disk was, or "
    "the server will never take them."};
constexpr MetricFamily kDiskErrors{MetricFamily::Kind::kCounter, "nos_telemetry_spool_errors_total",
                                   "Writes to the spool that failed since the start."};

constexpr size_t kMostXids = 1000;
constexpr size_t kMostScrapeBytes = size_t{8} << 20;
constexpr size_t kMostAnswerBytes = size_t{1} << 20;
constexpr Duration kScrapeTimeout = std::chrono::seconds(3);
constexpr Duration kSendTimeout = std::chrono::seconds(20);
constexpr Duration kIdle = std::chrono::minutes(1);

Status WrongField(std::string_view field, std::string_view what) {
  return Invalid(fmt::format("telemetry.{}: {}", field, what));
}

bool IsLocal(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return net::IsLoopbackAuthority(url.substr(0, url.find('/')));
}

bool IsHttp(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

}  // namespace

void DescribeDelivery(ConfigFields& f, DeliveryConfig& c) {
  f.Text("endpoint", c.endpoint,
         "Base URL of the telemetry server (https://HOST[:PORT][/PATH]); empty: nothing leaves the "
         "node.");
  f.Text("cluster", c.cluster, "What this cluster is called there.");
  f.Text("tokenFile", c.token_file, "Bearer token; read again when it is rotated.");
  f.Text("caFile", c.ca_file, "Authorities of the server (PEM); empty: those of the system.");
  f.Text("certificateFile", c.certificate_file,
         "Client certificate (PEM) for servers that ask for one.");
  f.Text("keyFile", c.key_file, "Its key (PEM).");
  f.Text("spoolFolder", c.spool_folder,
         "Where what is not delivered waits, over restarts; made if it is not there.");
  f.Number("spoolMiB", c.spool_mib, 1, 1 << 20,
           "How much may wait; then the oldest is dropped and counted.");
}

Result<kube::ConnectionConfig> ConnectionOf(const DeliveryConfig& config) {
  if (!IsHttp(config.endpoint)) {
    return WrongField("endpoint", "it must begin with https:// (or http://)");
  }
  const bool open = config.endpoint.starts_with("http://") && !IsLocal(config.endpoint);
  if (open && !config.token_file.empty()) {
    return WrongField("endpoint", "a token is sent over https only, or within this machine");
  }
  if (config.cluster.empty()) {
    return WrongField("cluster", "say what the telemetry server is to call this cluster");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return WrongField("certificateFile", "it goes together with keyFile");
  }
  kube::ConnectionConfig connection;
  connection.server = config.endpoint;
  while (connection.server.ends_with('/')) connection.server.pop_back();
  connection.token.file = config.token_file;
  connection.ca.file = config.ca_file;
  connection.client_certificate.file = config.certificate_file;
  connection.client_key.file = config.key_file;
  return connection;
}

void DescribeAgentTelemetry(ConfigFields& f, AgentTelemetryConfig& c) {
  DescribeDelivery(f, c.delivery);
  f.Seconds("intervalSeconds", c.interval, std::chrono::seconds(1), std::chrono::hours(1),
            "How often GPUs are measured.");
  f.Flag("gpuMetrics", c.gpu_metrics,
         "Show what GPUs measure on /metrics, under the names of DCGM's exporter.");
  f.Text("dcgmUrl", c.dcgm_url,
         "A DCGM exporter of this node (http://localhost:9400/metrics), for the utilization of MIG "
         "devices where the driver cannot tell it; empty: none is asked.");
}

void XidLog::Add(telemetry::XidEvent event) {
  const std::scoped_lock lock(mutex_);
  if (events_.size() < kMostXids) events_.push_back(std::move(event));
}

std::vector<telemetry::XidEvent> XidLog::Take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(events_, {});
}

Result<std::unique_ptr<DcgmScraper>> DcgmScraper::For(const std::string& url) {
  if (!IsHttp(url)) return WrongField("dcgmUrl", "it must begin with http://");
  kube::ConnectionConfig to;
  const size_t path = url.find('/', url.find("://") + 3);
  to.server = url.substr(0, path);
  return std::unique_ptr<DcgmScraper>(
      new DcgmScraper(std::move(to), path == std::string::npos ? "/metrics" : url.substr(path)));
}

DcgmScraper::DcgmScraper(kube::ConnectionConfig to, std::string path)
    : path_(std::move(path)),
      transport_(std::move(to), {.timeout = kScrapeTimeout, .max_answer_bytes = kMostScrapeBytes}) {
}

Status DcgmScraper::Fill(telemetry::NodeSample& sample) {
  kube::ApiRequest request;
  request.method = "GET";
  request.path = path_;
  request.accept = "text/plain";
  NOS_ASSIGN(const kube::ApiResponse response, transport_.Do(request));
  if (response.code != 200) {
    return {Code::kUnavailable, fmt::format("it answers {}", response.code)};
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
    NOS_ASSIGN(const kube::ConnectionConfig connection, ConnectionOf(config.delivery));
    self->transport_ = std::make_unique<kube::HttpTransport>(
        connection,
        kube::HttpOptions{.timeout = kSendTimeout, .max_answer_bytes = kMostAnswerBytes});
  }
  if (self->transport_ || config.gpu_metrics) {
    self->looking_ = std::thread([it = self.get()] { it->LookAgainAndAgain(); });
  }
  return self;
}

AgentTelemetry::AgentTelemetry(const AgentTelemetryConfig& config, const AgentSources& sources)
    : config_(config), sources_(sources), gpu_metrics_(sources.metrics) {}

AgentTelemetry::~AgentTelemetry() {
  stop_ = true;
  look_bell_.Ring();
  send_bell_.Ring();
  if (looking_.joinable()) looking_.join();
  if (sending_.joinable()) sending_.join();
}

Status AgentTelemetry::OpenSpool() {
  if (spool_) return Status::Ok();
  const DeliveryConfig& delivery = config_.delivery;
  NOS_ASSIGN(spool_, telemetry::Spool::Open(
                         {.folder = delivery.spool_folder,
                          .most_bytes = static_cast<uint64_t>(delivery.spool_mib) << 20}));
  telemetry::SenderOptions options{.cluster = delivery.cluster, .source = "node/" + sources_.node};
  options.seed = std::hash<std::string>()(spool_->boot());
  sender_ = std::make_unique<telemetry::Sender>(options, *spool_, *transport_, sources_.metrics);
  sending_ = std::thread([this] { SendAgainAndAgain(); });
  return Status::Ok();
}

void AgentTelemetry::LookAgainAndAgain() {
  const SteadyClock clock;
  Time next = clock.Now();
  std::string trouble;
  while (!stop_) {
    const Status looked = Look();
    if (!looked.ok() && looked.message() != trouble) {
      Log(LogLevel::kWarn, "not all of what GPUs measure is known or kept",
          {{"error", looked.message()}});
    }
    trouble = looked.message();
    // Evenly; what was missed is not made up for.
    next = std::max(next + config_.interval, clock.Now());
    look_bell_.Wait(next - clock.Now());
  }
}

Status AgentTelemetry::Look() {
  NOS_ASSIGN(telemetry::NodeSample sample,
             telemetry::TakeSample(sources_.node, sources_.backend, sources_.pod_resources,
                                   sources_.catalogue, &sources_.health));
  Status worst = sample.holders_status;
  if (dcgm_) {
    if (const Status filled = dcgm_->Fill(sample); !filled.ok()) {
      worst = filled.Within("DCGM exporter (telemetry.dcgmUrl)");
    }
  }
  const std::vector<telemetry::XidEvent> xids = sources_.xids.Take();
  if (config_.gpu_metrics) gpu_metrics_.Show(sample, xids);
  if (!transport_) return worst;
  if (const Status opened = OpenSpool(); !opened.ok()) {
    for (const telemetry::XidEvent& event : xids) sources_.xids.Add(event);  // for the next look
    return opened.Within("telemetry spool");
  }
  ShowSpool();  // before this look adds to it: what is there has not been delivered since the last
  const Time now = SystemClock().Now();
  if (const Status kept = spool_->Append(sampler_.Records(sample, xids, now)); !kept.ok()) {
    worst = kept.Within("telemetry spool");
  }
  send_bell_.Ring();
  return worst;
}

void AgentTelemetry::SendAgainAndAgain() {
  const SteadyClock clock;  // pauses are not to change with the system's time
  while (!stop_) send_bell_.Wait(sender_->Step(clock.Now()).value_or(kIdle));
}

void AgentTelemetry::ShowSpool() {
  const telemetry::SpoolStats stats = spool_->Stats();
  sources_.metrics.Set(kWaiting, {}, static_cast<double>(stats.envelopes));
  sources_.metrics.Set(kBytes, {}, static_cast<double>(stats.bytes));
  sources_.metrics.CountTo(kLost, {}, static_cast<double>(stats.lost_records));
  sources_.metrics.CountTo(kDiskErrors, {}, static_cast<double>(stats.disk_errors));
}

}  // namespace nos::cmd
