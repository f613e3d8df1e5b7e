#include "cmd/telemetry/server.h"

#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/millis.h"
#include "net/listen.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

// Each envelope holds one until it is on disk; readers whose rights are asked for hold some, too.
constexpr int kThreads = 64;
constexpr uint64_t kMostHeld = uint64_t{256} << 20;
constexpr size_t kMostTokenFile = size_t{4} << 20;
// A stream ends after that, and its client comes again: so that who may not see any more stops,
// about as soon as elsewhere. In the sandbox all see everything.
constexpr Duration kStreamLimit = std::chrono::minutes(1), kOpenStreamLimit = std::chrono::hours(1);

bool IsLoopback(const std::string& address) { return address == "127.0.0.1" || address == "::1"; }

// Nothing that others could reach stands open because something was left out.
Status CheckSafe(const TelemetryServerConfig& config, const net::HttpServerOptions& options) {
  const bool loopback = IsLoopback(options.address);
  if (config.sandbox && !loopback) {
    return Invalid(
        fmt::format("--sandbox is open to all of this machine: listen on 127.0.0.1, not on {}",
                    config.address));
  }
  if (config.sandbox) return Status::Ok();
  if (config.token_file.empty()) {
    return Invalid(
        "ingest.tokenFile is empty, and anybody could deliver: name a file of tokens, or give "
        "--sandbox on a machine of your own");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return Invalid("listen: tlsCertFile and tlsKeyFile go together");
  }
  if (config.certificate_file.empty() && !loopback && !config.plaintext) {
    return Invalid(
        "listen: tokens would go over the network unencrypted: give tlsCertFile and tlsKeyFile, or "
        "allowPlaintext where a proxy in front does TLS");
  }
  return Status::Ok();
}

// That anything is known of, in the cluster in which readers have their rights.
std::set<std::string> NamespacesOf(const telemetryserver::Recorder& recorder, const std::string& home) {
  std::set<std::string> namespaces;
  const std::vector<std::string> clusters = recorder.Clusters();
  const std::string& cluster = clusters.size() == 1 ? clusters.front() : home;
  recorder.Look(cluster, [&](const telemetryserver::Live& live) {
    for (const auto& [uid, pod] : live.state.pods()) namespaces.insert(pod.ns);
  });
  return namespaces;
}

}  // namespace

void DescribeTelemetryServer(ConfigFields& f, TelemetryServerConfig& c) {
  using std::chrono::hours, std::chrono::seconds, std::chrono::minutes;
  f.Group("listen", [&] {
    f.Text("bindAddress", c.address, "Where reporters deliver and the dashboard is.");
    f.Text("tlsCertFile", c.certificate_file, "Its certificate, PEM. Read anew when it changes.");
    f.Text("tlsKeyFile", c.key_file, "Its key, PEM.");
    f.Text("clientCaFile", c.client_ca_file,
           "PEM. Not empty: only clients with a certificate of this authority may come.");
    f.Flag("allowPlaintext", c.plaintext,
           "Serve without TLS also where other machines can reach it: behind a proxy that has it.");
  });
  f.Group("ingest", [&] {
    f.Text("tokenFile", c.token_file,
           "Who may deliver: a line \"CLUSTER TOKEN\" each, CLUSTER \"*\" for any. Read anew when "
           "it changes.");
    f.Seconds("reportIntervalSeconds", c.recorder.report_every, seconds(1), hours(1),
              "How often agents report; data three times as old is shown as old.");
  });
  DescribeReaders(f, c.readers);
  f.Group("store", [&] {
    f.Text("file", c.recorder.store.path, "The database; it and two files beside it are written.");
    f.Number("maxMegabytes", c.most_megabytes, 0, 100'000'000,
             "It grows no larger; what comes then is refused. 0: as large as the disk.");
    f.Seconds("flushSeconds", c.recorder.flush_every, seconds(1), hours(1),
              "How long samples stay in memory and in the journal before they are compressed.");
  });
  f.Group("retention", [&] {
    const auto days = [&](const char* key, telemetry::Millis& value, Duration least,
                          std::string_view help) {
      Duration duration = std::chrono::milliseconds(value);
      f.Seconds(key, duration, least, hours(24 * 3650), help);
      value = ToMillis(duration);
    };
    telemetryserver::Retention& keep = c.recorder.retention;
    days("rawSeconds", keep.raw, hours(12), "Every sample.");
    days("fiveMinuteSeconds", keep.rollups_5m, hours(24 * 6), "Mean, min and max of five minutes.");
    days("hourSeconds", keep.rollups_1h, hours(24 * 6), "Mean, min and max of an hour.");
    days("eventSeconds", keep.events, hours(24), "Layouts, pods, quotas, decisions, Events.");
  });
  f.Group("export", [&] { DescribeExports(f, c.exports); });
}

Result<std::unique_ptr<TelemetryServer>> TelemetryServer::Start(const TelemetryServerConfig& config,
                                                                const gpu::Catalogue& catalogue,
                                                                const Clock& clock,
                                                                Metrics& metrics) {
  std::unique_ptr<TelemetryServer> server(new TelemetryServer(config, metrics));
  NOS_ASSIGN(const net::HttpServerOptions options, net::ParseListenAddress(config.address));
  NOS_RETURN_IF_ERROR(CheckSafe(config, options));
  NOS_RETURN_IF_ERROR(server->ReadTokens());
  telemetryserver::RecorderOptions recorder = config.recorder;
  recorder.store.most_bytes = config.most_megabytes << 20;
  AddFollowers(config.exports, recorder);
  NOS_ASSIGN(server->recorder_,
             telemetryserver::Recorder::Open(recorder, catalogue, clock, metrics,
                                       [self = server.get()] { self->hub_.Changed(); }));
  ReadersConfig readers = config.readers;
  readers.sandbox = config.sandbox;
  readers.sandbox_cluster = config.sandbox_cluster;
  NOS_ASSIGN(server->readers_,
             TelemetryReaders::Make(readers, {clock, catalogue, [self = server.get()] {
                                                return NamespacesOf(
                                                    *self->recorder_,
                                                    self->config_.readers.actions.cluster);
                                              }}));
  const bool open = config.sandbox && config.token_file.empty();
  server->ingest_ = std::make_unique<telemetryserver::Ingest>(*server->recorder_,
                                                        open ? nullptr : &server->tokens_, metrics);
  TelemetryReaders& people = *server->readers_;
  server->api_ = std::make_unique<telemetryserver::Api>(telemetryserver::Api::Parts{
      .recorder = *server->recorder_,
      .ingest = *server->ingest_,
      .hub = server->hub_,
      .catalogue = catalogue,
      .metrics = metrics,
      .authenticate = [&](const net::HttpRequest& request) { return people.Authenticate(request); },
      .sandbox = config.sandbox,
      .version = NOS_VERSION,
      .actions = people.actions(),
      .limits = people.limits(),
      .audit = people.audit(),
      .address = [&](const net::HttpRequest& request) { return people.AddressOf(request); },
      .sign_in = people.sign_in(),
      .sees = [&](const telemetryserver::Reader& reader,
                  const std::string& ns) { return people.Sees(reader, ns); },
      .home = config.readers.actions.cluster});
  NOS_ASSIGN(server->exports_,
             Exports::Start(config.exports, recorder.store.path, *server->recorder_, metrics));
  NOS_RETURN_IF_ERROR(server->Listen());
  return server;
}

// Whoever is being answered uses the others.
TelemetryServer::~TelemetryServer() { server_.reset(); }

Status TelemetryServer::Listen() {
  NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(config_.address));
  options.threads = kThreads;
  options.max_connections = 2000;
  options.max_body_bytes = telemetryserver::kMostIngestBody;
  options.max_held_bytes = kMostHeld;
  if (!config_.certificate_file.empty()) {
    options.tls = net::TlsFiles{config_.certificate_file, config_.key_file, config_.client_ca_file};
  }
  auto server = net::Listen(std::move(options),
                            [this](const net::HttpRequest& request) { return Answer(request); });
  if (!server.ok()) return server.status().Within("listen.bindAddress " + config_.address);
  server_ = std::move(server).value();
  return Status::Ok();
}

Status TelemetryServer::ReadTokens() {
  if (config_.token_file.empty()) return Status::Ok();
  NOS_ASSIGN(const std::string text, ReadFile(config_.token_file, kMostTokenFile));
  return tokens_.Read(text).Within(config_.token_file);
}

net::HttpResponse TelemetryServer::Answer(const net::HttpRequest& request) {
  if (config_.sandbox) {
    const Status local = net::CheckLocal(request);
    if (!local.ok()) return telemetryserver::ErrorAnswer(403, local.message());
  }
  Probes* const probes = probes_;
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (probes != nullptr && (path == "/healthz" || path == "/readyz" || path == "/metrics")) {
    return probes->Answer(request);
  }
  if (auto answer = readers_->Answer(request)) return std::move(*answer);
  net::HttpResponse response = api_->Answer(request);
  if (response.stream != nullptr && response.stream_limit == Duration(0)) {
    response.stream_limit = config_.sandbox ? kOpenStreamLimit : kStreamLimit;
  }
  return response;
}

}  // namespace nos::cmd
