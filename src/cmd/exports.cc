#include "cmd/exports.h"

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "base/bell.h"
#include "base/log.h"
#include "exports/exporter.h"
#include "exports/remote_write.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(20);
constexpr size_t kMostAnswerBytes = size_t{1} << 20;
constexpr int kMostShards = 64;

kube::HttpOptions HttpOptionsOfExports() {
  return {.timeout = kTimeout,
          .requests_per_second = 1000,
          .burst = 1000,
          .max_answer_bytes = kMostAnswerBytes,
          .max_connections = kMostShards};
}

void DescribeDestination(ConfigFields& f, exports::DestinationConfig& c, std::string_view what) {
  f.Text("url", c.url, what);
  f.Text("tokenFile", c.token_file, "Bearer token; read again when it is rotated.");
  f.Text("username", c.username, "For basic authentication, in place of a token.");
  f.Text("passwordFile", c.password_file, "Its password; read again when it is rotated.");
  f.Text("caFile", c.ca_file, "Authorities of the server (PEM); empty: those of the system.");
  f.Text("certificateFile", c.certificate_file,
         "Client certificate (PEM) for servers that ask for one.");
  f.Text("keyFile", c.key_file, "Its key (PEM).");
}

}  // namespace

void DescribeExports(ConfigFields& f, ExportsConfig& c) {
  f.Number("backlogMegabytes", c.backlog_megabytes, 1, 10'000'000,
           "How much is kept in the store for a system that does not answer; then the oldest is "
           "not exported any more.");
  f.Group("remoteWrite", [&] {
    auto& r = c.remote_write;
    DescribeDestination(f, r.destination,
                        "Samples go there by Prometheus remote-write "
                        "(https://HOST[:PORT]/api/v1/write); empty: nowhere.");
    f.Text("externalLabels", r.labels, "Further labels of all series: \"region=eu,env=prod\".");
    f.Text("metrics", r.metrics,
           "Which, separated by commas: \"nos_gpu_utilization,nos_cluster_*\"; empty: all.");
    f.Number("shards", r.shards, 1, kMostShards, "Requests under way at once.");
    f.Number("samplesPerRequest", r.samples, 1, 20'000, "At most so many in one request.");
  });
}

void AddFollowers(const ExportsConfig& config, telemetry::RecorderOptions& options) {
  options.most_backlog = config.backlog_megabytes << 20;
  if (!config.remote_write.destination.url.empty()) {
    options.followers.emplace_back(exports::RemoteWrite::kName);
  }
}

// An export with its thread.
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

  Status Start(const std::string& store_path, telemetry::Recorder& recorder,
               std::unique_ptr<exports::Sink> sink, Metrics& metrics) {
    NOS_ASSIGN(auto journal, telemetry::JournalReader::Open(store_path));
    sink_ = std::move(sink);
    exporter_ =
        std::make_unique<exports::Exporter>(name_, recorder, std::move(journal), *sink_, metrics);
    Log(LogLevel::kInfo, "telemetry is exported",
        {{"export", name_}, {"to", destination_.connection().server + destination_.path()}});
    thread_ = std::thread([this] {
      const SteadyClock clock;
      while (!stop_) bell_.Wait(exporter_->Step(clock.Now()));
    });
    return Status::Ok();
  }

 private:
  const std::string name_;
  const exports::Destination destination_;
  kube::HttpTransport transport_;
  std::unique_ptr<exports::Sink> sink_;
  std::unique_ptr<exports::Exporter> exporter_;
  std::atomic<bool> stop_ = false;
  Bell bell_;
  std::thread thread_;  // last: uses the others
};

Exports::Exports() = default;
Exports::~Exports() = default;

Result<std::unique_ptr<Exports>> Exports::Start(const ExportsConfig& config,
                                                const std::string& store_path,
                                                telemetry::Recorder& recorder, Metrics& metrics) {
  std::unique_ptr<Exports> all(new Exports());
  const auto start = [&](const char* name, const exports::DestinationConfig& where,
                         const auto& make_sink) -> Status {
    if (where.url.empty()) return Status::Ok();
    NOS_ASSIGN(exports::Destination destination,
               exports::Destination::For(where, std::string("export.") + name));
    auto running = std::make_unique<Running>(name, std::move(destination));
    NOS_RETURN_IF_ERROR(running->Start(store_path, recorder, make_sink(*running), metrics));
    all->running_.push_back(std::move(running));
    return Status::Ok();
  };

  auto labels = exports::ParseLabels(config.remote_write.labels);
  if (!labels.ok()) return labels.status().Within("export.remoteWrite.externalLabels");
  NOS_RETURN_IF_ERROR(
      start(exports::RemoteWrite::kName, config.remote_write.destination, [&](Running& running) {
        const exports::RemoteWriteOptions options{config.remote_write.metrics, *labels,
                                                  static_cast<size_t>(config.remote_write.shards),
                                                  static_cast<size_t>(config.remote_write.samples)};
        auto sink = std::make_unique<exports::RemoteWrite>(options, running.destination(),
                                                           running.transport(), metrics);
        for (const std::string& cluster : recorder.Clusters()) {
          recorder.Look(cluster,
                        [&](const telemetry::Live& live) { sink->Know(cluster, live.state); });
        }
        return sink;
      }));
  return all;
}

}  // namespace nos::cmd
