#include "cmd/daemon/delivery.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "base/log.h"
#include "cmd/metrics.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{1} << 20;
constexpr Duration kSendTimeout = std::chrono::seconds(20);
constexpr int kMaxSharing = 16;
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
         "Base URL of the telemetry server (https://HOST[:PORT][/PATH]). Empty: no telemetry is "
         "sent.");
  f.Text("cluster", c.cluster, "Name of this cluster on the telemetry server.");
  f.Text("tokenFile", c.token_file, "File with the bearer token; reloaded when it changes.");
  f.Text("caFile", c.ca_file,
         "CA certificates (PEM) that verify the server. Empty: the system's CA certificates.");
  f.Text("certificateFile", c.certificate_file,
         "Client certificate (PEM), for servers that require one.");
  f.Text("keyFile", c.key_file, "Private key of the client certificate (PEM).");
  f.Text("spoolFolder", c.spool_folder,
         "Folder that buffers undelivered records across restarts; created if it does not exist.");
  f.Renamed("spoolMiB", "maxSpoolMiB");
  f.Number("maxSpoolMiB", c.spool_mib, 1, 1 << 20,
           "Maximum size of the spool in MiB. When it is full, the oldest records are dropped and "
           "counted.");
  f.Flag(
      "spoolShared", c.spool_shared,
      "True if several processes share spoolFolder on one volume. Each process locks a subfolder "
      "(0, 1, ...) that no other process uses, and sends the records that it finds there.");
}

Result<kube::ConnectionConfig> ConnectionOf(const DeliveryConfig& config) {
  if (!IsHttp(config.endpoint)) {
    return WrongField("endpoint", "it must begin with https:// (or http://)");
  }
  const bool open = config.endpoint.starts_with("http://") && !IsLocal(config.endpoint);
  if (open && !config.token_file.empty()) {
    return WrongField("endpoint", "a token requires https, or an address on this machine");
  }
  if (config.cluster.empty()) {
    return WrongField("cluster", "required: name of this cluster on the telemetry server");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return WrongField("certificateFile", "certificateFile and keyFile must be set together");
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

Result<std::unique_ptr<Delivery>> Delivery::For(const DeliveryConfig& config, std::string source,
                                                Metrics& metrics) {
  NOS_ASSIGN(kube::ConnectionConfig connection, ConnectionOf(config));
  return std::unique_ptr<Delivery>(
      new Delivery(config, std::move(source), std::move(connection), metrics));
}

Delivery::Delivery(DeliveryConfig config, std::string source, kube::ConnectionConfig connection,
                   Metrics& metrics)
    : config_(std::move(config)),
      source_(std::move(source)),
      metrics_(metrics),
      transport_(std::move(connection),
                 {.timeout = kSendTimeout, .max_answer_bytes = kMaxAnswerBytes}) {}

Delivery::~Delivery() {
  stop_ = true;
  bell_.Ring();
  if (sending_.joinable()) sending_.join();
}

// In a shared folder, takes the first subfolder that no other process has locked. It may still hold
// records of its previous owner.
Result<std::unique_ptr<telemetry::Spool>> Delivery::OpenSpool() const {
  telemetry::SpoolOptions options{.folder = config_.spool_folder,
                                  .max_bytes = static_cast<uint64_t>(config_.spool_mib) << 20};
  if (!config_.spool_shared) return telemetry::Spool::Open(std::move(options));
  Status why;
  for (int i = 0; i < kMaxSharing; ++i) {
    options.folder = fmt::format("{}/{}", config_.spool_folder, i);
    auto spool = telemetry::Spool::Open(options);
    if (spool.ok() || spool.status().code() != Code::kUnavailable) return spool;
    why = spool.status();
  }
  return why;
}

Status Delivery::Open() {
  if (spool_) return Status::Ok();
  NOS_ASSIGN(spool_, OpenSpool());
  telemetry::SenderOptions options{.cluster = config_.cluster, .source = source_};
  options.seed = std::hash<std::string>()(spool_->boot());
  sender_ = std::make_unique<telemetry::Sender>(options, *spool_, transport_, metrics_);
  sending_ = std::thread([this] { SendAgainAndAgain(); });
  return Status::Ok();
}

Status Delivery::Add(std::span<const std::string> records) {
  NOS_RETURN_IF_ERROR(Open());
  Show();  // publish first: existing envelopes were not delivered since the last report
  Status kept = spool_->Append(records);
  bell_.Ring();
  return kept;
}

void Delivery::SendAgainAndAgain() {
  const SteadyClock clock;  // pauses must not depend on changes of the system time
  while (!stop_) bell_.Wait(sender_->Step(clock.Now()).value_or(kIdle));
}

void Delivery::Show() {
  const telemetry::SpoolStats stats = spool_->Stats();
  metrics_.Set(kSpoolEnvelopes, {}, static_cast<double>(stats.envelopes));
  metrics_.Set(kSpoolBytes, {}, static_cast<double>(stats.bytes));
  metrics_.CountTo(kLostRecords, {}, static_cast<double>(stats.lost_records));
  metrics_.CountTo(kSpoolErrors, {}, static_cast<double>(stats.disk_errors));
}

}  // namespace nos::cmd
