#include "cmd/telemetry/exports.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/wake_signal.h"
#include "exports/exporter.h"
#include "exports/remote_write.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(20);
constexpr size_t kMaxAnswerBytes = size_t{1} << 20;
constexpr int kMaxShards = 64;

kube::HttpOptions HttpOptionsOfExports() {
  return {.timeout = kTimeout,
          .requests_per_second = 1000,
          .burst = 1000,
          .max_answer_bytes = kMaxAnswerBytes,
          .max_connections = kMaxShards};
}

void DescribeDestination(ConfigFields& f, exports::DestinationConfig& c, std::string_view what) {
  f.Text("url", c.url, what);
  f.Text("tokenFile", c.token_file, "File with the bearer token; reloaded when it changes.");
  f.Text("username", c.username, "User name for basic authentication, in place of a token.");
  f.Text("passwordFile", c.password_file, "File with the password; reloaded when it changes.");
  f.Text("caFile", c.ca_file,
         "CA certificates (PEM) that verify the server. Empty: the system's CA certificates.");
  f.Text("certificateFile", c.certificate_file,
         "Client certificate (PEM), for servers that require one.");
  f.Text("keyFile", c.key_file, "Private key of the client certificate (PEM).");
}

// Gives the sink the state from before the first exported record.
void Acquaint(auto& sink, const telemetryserver::Recorder& recorder) {
  for (const std::string& cluster : recorder.Clusters()) {
    recorder.Look(cluster,
                  [&](const telemetryserver::Live& live) { sink.Know(cluster, live.state); });
  }
}

}  // namespace

void DescribeExports(ConfigFields& f, ExportsConfig& c) {
  f.Number(
      "backlogMegabytes", c.backlog_megabytes, 1, 10'000'000,
      "Approximate size of the journal kept for a destination that does not answer. Beyond it the "
      "oldest records are not exported.");
  f.Group("remoteWrite", [&] {
    auto& r = c.remote_write;
    DescribeDestination(f, r.destination,
                        "URL that receives samples by Prometheus remote-write "
                        "(https://HOST[:PORT]/api/v1/write); empty: nowhere.");
    f.Text("externalLabels", r.labels, "Additional labels of all series: \"region=eu,env=prod\".");
    f.Text("metrics", r.metrics,
           "Metrics to export, separated by commas: \"nos_gpu_utilization,nos_cluster_*\"; empty: "
           "all.");
    f.Renamed("shards", "maxShards");
    f.Number("maxShards", r.shards, 1, kMaxShards, "Maximum number of requests in flight.");
    f.Renamed("samplesPerRequest", "maxSamplesPerRequest");
    f.Number("maxSamplesPerRequest", r.samples, 1, 20'000,
             "Maximum number of samples in one request.");
  });
  f.Group("clickHouse", [&] {
    auto& h = c.clickhouse;
    DescribeDestination(
        f, h.destination,
        "URL that receives samples and records (https://HOST:8443, ClickHouse's HTTP "
        "interface); empty: nowhere.");
    f.Text("database", h.options.database,
           "Database; it and its tables are created if they do not exist.");
    f.Number("samplesDays", h.options.samples_days, 0, 10'000,
             "Days that samples are kept in the database; 0: forever.");
    f.Number(
        "recordsDays", h.options.rest_days, 0, 10'000,
        "Days that layouts, pods, decisions and envelopes are kept in the database; 0: forever.");
  });
  f.Group("walkai", [&] {
    auto& w = c.walkai;
    DescribeDestination(f, w.destination,
                        "URL of the walk:ai backend that receives snapshots of a cluster "
                        "(https://HOST/cluster/insights); empty: nowhere.");
    f.Text("cluster", w.options.cluster, "Cluster to export; a walk:ai backend supports one.");
    f.Seconds("intervalSeconds", w.options.interval, std::chrono::seconds(1), std::chrono::hours(1),
              "Interval of snapshots.");
  });
}

void AddFollowers(const ExportsConfig& config, telemetryserver::RecorderOptions& options) {
  options.max_backlog = config.backlog_megabytes << 20;
  if (!config.remote_write.destination.url.empty()) {
    options.followers.emplace_back(exports::RemoteWrite::kName);
  }
  if (!config.clickhouse.destination.url.empty()) {
    options.followers.emplace_back(exports::ClickHouse::kName);
  }
  if (!config.walkai.destination.url.empty()) {
    options.event_followers.emplace_back(exports::Walkai::kName);
  }
}

// An export and its thread.
class Exports::Running {
 public:
  Running(std::string name, exports::Destination destination)
      : name_(std::move(name)),
        destination_(std::move(destination)),
        transport_(destination_.connection(), HttpOptionsOfExports()) {}
  ~Running() {
    stop_ = true;
    bell_.Ring();
    if (thread_.joinable()) thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const exports::Destination& destination() const { return destination_; }
  kube::Transport& transport() { return transport_; }
  const std::string& name() const { return name_; }

  // `step` delivers a batch and returns the pause before the next call.
  void Run(std::function<Duration(Time)> step) {
    step_ = std::move(step);
    Log(LogLevel::kInfo, "exporting telemetry",
        {{"export", name_}, {"to", destination_.connection().server + destination_.path()}});
    thread_ = std::thread([this] {
      const SteadyClock clock;
      while (!stop_) bell_.Wait(step_(clock.Now()));
    });
  }

 private:
  const std::string name_;
  const exports::Destination destination_;
  kube::HttpTransport transport_;
  std::function<Duration(Time)> step_;
  std::atomic<bool> stop_ = false;
  WakeSignal bell_;
  std::thread thread_;  // last: uses the other members
};

Exports::Exports() = default;
Exports::~Exports() = default;

Result<std::unique_ptr<Exports>> Exports::Start(const ExportsConfig& config,
                                                const std::string& store_path,
                                                telemetryserver::Recorder& recorder,
                                                Metrics& metrics) {
  std::unique_ptr<Exports> all(new Exports());
  NOS_RETURN_IF_ERROR(all->StartRemoteWrite(config, store_path, recorder, metrics));
  NOS_RETURN_IF_ERROR(all->StartClickHouse(config, store_path, recorder, metrics));
  NOS_RETURN_IF_ERROR(all->StartWalkai(config, recorder, metrics));
  return all;
}

Result<Exports::Running*> Exports::Add(const char* name, const exports::DestinationConfig& config) {
  NOS_ASSIGN(exports::Destination destination,
             exports::Destination::For(config, std::string("export.") + name));
  return running_.emplace_back(std::make_unique<Running>(name, std::move(destination))).get();
}

Status Exports::Follow(Running& running, std::shared_ptr<exports::Sink> sink,
                       const std::string& store_path, telemetryserver::Recorder& recorder,
                       Metrics& metrics) {
  NOS_ASSIGN(auto journal, telemetryserver::JournalReader::Open(store_path));
  const auto exporter = std::make_shared<exports::Exporter>(running.name(), recorder,
                                                            std::move(journal), *sink, metrics);
  running.Run([sink = std::move(sink), exporter](Time now) { return exporter->Step(now); });
  return Status::Ok();
}

Status Exports::StartRemoteWrite(const ExportsConfig& config, const std::string& store_path,
                                 telemetryserver::Recorder& recorder, Metrics& metrics) {
  const auto& c = config.remote_write;
  if (c.destination.url.empty()) return Status::Ok();
  auto labels = exports::ParseLabels(c.labels);
  if (!labels.ok()) return labels.status().Within("export.remoteWrite.externalLabels");
  NOS_ASSIGN(Running * running, Add(exports::RemoteWrite::kName, c.destination));
  exports::RemoteWriteOptions options{c.metrics, *std::move(labels), static_cast<size_t>(c.shards),
                                      static_cast<size_t>(c.samples)};
  auto sink = std::make_shared<exports::RemoteWrite>(std::move(options), running->destination(),
                                                     running->transport(), metrics);
  Acquaint(*sink, recorder);
  return Follow(*running, std::move(sink), store_path, recorder, metrics);
}

Status Exports::StartClickHouse(const ExportsConfig& config, const std::string& store_path,
                                telemetryserver::Recorder& recorder, Metrics& metrics) {
  const auto& c = config.clickhouse;
  if (c.destination.url.empty()) return Status::Ok();
  NOS_RETURN_IF_ERROR(
      exports::ClickHouse::CheckDatabase(c.options.database).Within("export.clickHouse.database"));
  NOS_ASSIGN(Running * running, Add(exports::ClickHouse::kName, c.destination));
  auto sink = std::make_shared<exports::ClickHouse>(c.options, running->destination(),
                                                    running->transport(), metrics);
  Acquaint(*sink, recorder);
  return Follow(*running, std::move(sink), store_path, recorder, metrics);
}

Status Exports::StartWalkai(const ExportsConfig& config, telemetryserver::Recorder& recorder,
                            Metrics& metrics) {
  const auto& c = config.walkai;
  if (c.destination.url.empty()) return Status::Ok();
  if (c.options.cluster.empty()) {
    return Invalid("export.walkai.cluster: required: a walk:ai backend supports one cluster");
  }
  NOS_ASSIGN(Running * running, Add(exports::Walkai::kName, c.destination));
  const auto walkai = std::make_shared<exports::Walkai>(c.options, recorder, running->destination(),
                                                        running->transport(), metrics);
  running->Run([walkai](Time now) { return walkai->Step(now); });
  return Status::Ok();
}

}  // namespace nos::cmd
