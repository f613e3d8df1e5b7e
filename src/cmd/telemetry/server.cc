#include "cmd/telemetry/server.h"

#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/millis.h"
#include "net/listen.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

// Each envelope holds a thread until it is on disk; readers hold one while their rights are
// reviewed.
constexpr int kThreads = 64;
constexpr uint64_t kMaxHeld = uint64_t{256} << 20;
constexpr size_t kMaxTokenFile = size_t{4} << 20;
// A stream ends after this time and its client reconnects, so that a revoked right ends streams
// about as soon as other requests. In the sandbox all users see everything.
constexpr Duration kStreamLimit = std::chrono::minutes(1), kOpenStreamLimit = std::chrono::hours(1);

bool IsLoopback(const std::string& address) { return address == "127.0.0.1" || address == "::1"; }

// Rejects configurations that would give other machines unauthenticated access.
Status CheckSafe(const TelemetryServerConfig& config, const net::HttpServerOptions& options) {
  const bool loopback = IsLoopback(options.address);
  if (config.sandbox && !loopback && !config.published) {
    return Invalid(fmt::format(
        "--sandbox grants access to all users of this machine: listen on 127.0.0.1, not on {}",
        config.address));
  }
  if (config.sandbox) return Status::Ok();
  if (config.token_file.empty()) {
    return Invalid(
        "ingest.tokenFile is required: without it any client could send records. Set it, or give "
        "--sandbox on your own machine");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return Invalid("listen: tlsCertFile and tlsKeyFile must be set together");
  }
  if (config.certificate_file.empty() && !loopback && !config.plaintext) {
    return Invalid(
        "listen: tokens would be sent unencrypted: set tlsCertFile and tlsKeyFile, or "
        "allowPlaintext if a proxy terminates TLS");
  }
  return Status::Ok();
}

// Namespaces with records, of the cluster that defines readers' rights.
std::set<std::string> NamespacesOf(const telemetryserver::Recorder& recorder,
                                   const std::string& home) {
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
    f.Text("bindAddress", c.address,
           "Address that receives records and serves the API and the dashboard.");
    f.Text("tlsCertFile", c.certificate_file,
           "Certificate of the server (PEM). Reloaded when it changes.");
    f.Text("tlsKeyFile", c.key_file, "Private key of the server (PEM).");
    f.Text(
        "clientCaFile", c.client_ca_file,
        "CA certificates (PEM). If set, only clients with a certificate of this CA may connect.");
    f.Flag("allowPlaintext", c.plaintext,
           "Serve without TLS on addresses that other machines can reach: behind a proxy that "
           "terminates TLS.");
  });
  f.Group("ingest", [&] {
    f.Text("tokenFile", c.token_file,
           "Tokens of reporters, one line \"CLUSTER TOKEN\" each; CLUSTER \"*\" means any. "
           "Reloaded when it changes.");
    f.Seconds("reportIntervalSeconds", c.recorder.report_every, seconds(1), hours(1),
              "Interval of agents' reports; data older than three intervals is shown as stale.");
  });
  DescribeReaders(f, c.readers);
  f.Group("store", [&] {
    f.Text("file", c.recorder.store.path, "Database file; two more files are created beside it.");
    f.Number("maxMegabytes", c.most_megabytes, 0, 100'000'000,
             "Maximum size of the database; further records are rejected. 0: limited by the disk.");
    f.Seconds("flushSeconds", c.recorder.flush_every, seconds(1), hours(1),
              "Time that samples stay in memory and in the journal before they are compressed.");
  });
  f.Group("retention", [&] {
    const auto days = [&](const char* key, telemetry::Millis& value, Duration least,
                          std::string_view help) {
      Duration duration = std::chrono::milliseconds(value);
      f.Seconds(key, duration, least, hours(24 * 3650), help);
      value = ToMillis(duration);
    };
    telemetryserver::Retention& keep = c.recorder.retention;
    days("rawSeconds", keep.raw, hours(12), "Retention of raw samples.");
    days("fiveMinuteSeconds", keep.rollups_5m, hours(24 * 6),
         "Retention of mean, min and max over five minutes.");
    days("hourSeconds", keep.rollups_1h, hours(24 * 6),
         "Retention of mean, min and max over an hour.");
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
  server->ingest_ = std::make_unique<telemetryserver::Ingest>(
      *server->recorder_, open ? nullptr : &server->tokens_, metrics);
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

// Stops the server first: requests in progress use the other members.
TelemetryServer::~TelemetryServer() { server_.reset(); }

Status TelemetryServer::Listen() {
  NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(config_.address));
  options.threads = kThreads;
  options.max_connections = 2000;
  options.max_body_bytes = telemetryserver::kMaxIngestBody;
  options.max_held_bytes = kMaxHeld;
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
  NOS_ASSIGN(const std::string text, ReadFile(config_.token_file, kMaxTokenFile));
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
