#include "cmd/telemetry/server.h"

#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/log.h"
#include "base/millis.h"
#include "base/text.h"
#include "cmd/daemon/leader.h"
#include "cmd/metrics.h"
#include "net/listen.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

// Each envelope holds a thread until it is on disk; readers hold one while their rights are
// reviewed.
constexpr int kThreads = 64;
constexpr uint64_t kMaxHeld = uint64_t{256} << 20;
constexpr size_t kMaxTokenFile = size_t{4} << 20;
// Kubelets update ConfigMaps in pods within about two minutes, and reporters read them again.
constexpr Duration kSettling = std::chrono::minutes(10);
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
  if (config.token_file.empty() && !config.reporters.any()) {
    return Invalid(
        "ingest.tokenFile or ingest.serviceAccounts is required: without them any client could "
        "send records. Set one, or give --sandbox on your own machine");
  }
  if (config.reporters.any() && config.readers.audience == config.reporters.audience) {
    return Invalid(
        "readers.audience: must differ from ingest.audience, or every GPU node's token could read");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return Invalid("listen: tlsCertFile and tlsKeyFile must be set together");
  }
  if (!config.certificate_file.empty() && !config.service.empty()) {
    return Invalid(
        "listen: serviceName asks for an own certificate, and tlsCertFile names another");
  }
  if (config.certificate_file.empty() && config.service.empty() && !loopback && !config.plaintext) {
    return Invalid(
        "listen: tokens would be sent unencrypted: set tlsCertFile and tlsKeyFile, serviceName for "
        "a certificate of its own, or allowPlaintext if a proxy terminates TLS");
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

controllers::WebhookCertificateConfig CertificateOf(const TelemetryServerConfig& config) {
  const std::string ns = OwnNamespace();
  controllers::WebhookCertificateConfig own{.ns = ns,
                                            .secret = config.secret,
                                            .config_map = config.ca_config_map,
                                            .config_map_namespaces = {ns},
                                            .lifetime = config.certificate_lifetime,
                                            .settling = kSettling};
  for (const std::string_view other : Split(config.ca_namespaces, ',')) {
    const std::string name(Trim(other));
    if (!name.empty() && name != ns) own.config_map_namespaces.push_back(name);
  }
  own.dns_names = {fmt::format("{}.{}.svc", config.service, ns)};
  return own;
}

void DescribePrices(ConfigFields& f, telemetryserver::PriceList& c) {
  f.Text("currency", c.currency, "Currency of the prices, in capital letters: EUR, USD.");
  f.Text("note", c.note, "Shown with every bill, such as where the prices are from.");
  f.List(
      "prices", c.rules.size(), [&](size_t size) { c.rules.assign(size, {}); },
      [&](size_t i) {
        telemetryserver::PriceRule& rule = c.rules[i];
        f.Decimal("pricePerGpuHour", rule.per_gpu_hour, 0, telemetryserver::kMaxPrice,
                  "Price of a whole GPU for an hour; required.");
        f.Text("model", rule.model,
               "Model in the catalogue (H100-80GB), or the node's label nvidia.com/gpu.product.");
        f.Text("nodePool", rule.node_pool,
               "Pool or group of the node, by the labels of Karpenter, EKS, GKE and AKS.");
        f.Text("capacityType", rule.capacity_type,
               "on-demand, spot or reserved, by the labels of Karpenter, EKS, GKE and AKS.");
        f.Text("validFrom", rule.valid_from,
               "Time from which the price is valid: 2026-12-01, midnight UTC, or a full hour such "
               "as 2026-12-01T06:00:00Z. Default: always.");
        f.Texts("nodeLabels", rule.node_labels,
                "Labels of the node, among those that the operator reports (docs/cost.md).");
      },
      "Prices of GPUs, each with pricePerGpuHour and the conditions model, nodePool, capacityType "
      "and nodeLabels. The first one that is valid and whose conditions a GPU meets counts; a GPU "
      "that meets none is shown as unpriced.");
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
    f.Text("serviceName", c.service,
           "Service of this server, for a certificate of its own for SERVICE.NAMESPACE.svc, which "
           "it renews when a third of its lifetime is left. Empty: none.");
    f.Text("secretName", c.secret, "Secret that keeps this certificate, in this pod's namespace.");
    f.Text("caConfigMap", c.ca_config_map,
           "ConfigMap that gets its authority under the key ca.crt, for reporters.");
    f.Text("caNamespaces", c.ca_namespaces,
           "Further namespaces with such a ConfigMap, separated by commas.");
    f.Seconds("certificateLifetimeSeconds", c.certificate_lifetime, minutes(1), hours(24 * 3650),
              "Lifetime of this certificate.");
    f.Flag("allowPlaintext", c.plaintext,
           "Serve without TLS on addresses that other machines can reach: behind a proxy that "
           "terminates TLS.");
  });
  f.Group("ingest", [&] {
    f.Text("tokenFile", c.token_file,
           "Tokens of reporters, one line \"CLUSTER TOKEN\" each; CLUSTER \"*\" means any. "
           "Reloaded when it changes.");
    DescribeReporters(f, c.reporters);
    f.Seconds("reportIntervalSeconds", c.recorder.report_every, seconds(1), hours(1),
              "Interval of agents' reports; data older than three intervals is shown as stale.");
  });
  f.Group("alerts", [&] {
    f.Text("tokenFile", c.alerts_token_file,
           "Tokens of Alertmanagers, which deliver firing alerts, one line \"CLUSTER TOKEN\" each; "
           "CLUSTER \"*\" means any. Reloaded when it changes.");
    f.Text("serviceAccounts", c.alerts_accounts,
           "Service accounts of this cluster that may deliver alerts, NAMESPACE/NAME, separated by "
           "commas; their tokens are for ingest.audience.");
  });
  DescribeReaders(f, c.readers);
  f.Group("store", [&] {
    f.Text("file", c.recorder.store.path, "Database file; two more files are created beside it.");
    f.Number("maxMegabytes", c.max_megabytes, 0, 100'000'000,
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
  f.Group("cost", [&] { DescribePrices(f, c.prices); });
}

Result<std::unique_ptr<TelemetryServer>> TelemetryServer::Start(const TelemetryServerConfig& config,
                                                                const gpu::Catalogue& catalogue,
                                                                const Clock& clock,
                                                                Metrics& metrics) {
  std::unique_ptr<TelemetryServer> server(new TelemetryServer(config, metrics));
  NOS_ASSIGN(const net::HttpServerOptions options, net::ParseListenAddress(config.address));
  NOS_RETURN_IF_ERROR(CheckSafe(config, options));
  NOS_RETURN_IF_ERROR(telemetryserver::CheckPrices(config.prices).Within("cost"));
  NOS_RETURN_IF_ERROR(server->ReadTokens());
  telemetryserver::RecorderOptions recorder = config.recorder;
  recorder.store.max_bytes = config.max_megabytes << 20;
  AddFollowers(config.exports, recorder);
  NOS_ASSIGN(server->recorder_,
             telemetryserver::Recorder::Open(recorder, catalogue, clock, metrics,
                                             [self = server.get()] { self->hub_.Changed(); }));
  ReadersConfig readers = config.readers;
  readers.sandbox = config.sandbox;
  readers.sandbox_cluster = config.sandbox_cluster;
  readers.sandbox_partitions = config.sandbox_partitions;
  NOS_ASSIGN(server->readers_,
             TelemetryReaders::Make(readers, {clock, catalogue, [self = server.get()] {
                                                return NamespacesOf(
                                                    *self->recorder_,
                                                    self->config_.readers.actions.cluster);
                                              }}));
  NOS_RETURN_IF_ERROR(server->Connect(clock));
  const bool open = config.sandbox && config.token_file.empty();
  telemetryserver::Ingest::Admit admit;
  if (!open) {
    admit = [self = server.get()](const net::HttpRequest& request,
                                  const telemetry::Envelope* envelope) {
      return self->Admit(request, envelope);
    };
  }
  server->ingest_ =
      std::make_unique<telemetryserver::Ingest>(*server->recorder_, std::move(admit), metrics);
  if (server->ReceivesAlerts()) {
    telemetryserver::AlertReceiver::Admit admit_alerts;
    if (!config.sandbox) {
      admit_alerts = [self = server.get()](const net::HttpRequest& request,
                                           const std::string& cluster) {
        return self->AdmitAlerts(request, cluster);
      };
    }
    server->alerts_ = std::make_unique<telemetryserver::AlertReceiver>(*server->recorder_,
                                                                       std::move(admit_alerts));
  }
  TelemetryReaders& people = *server->readers_;
  server->costs_ =
      std::make_unique<telemetryserver::Costs>(*server->recorder_, catalogue, config.prices);
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
      .home = config.readers.actions.cluster,
      .tls = server->SpeaksTls(),
      .costs = server->costs_.get(),
      .alerts = server->alerts_.get()});
  NOS_ASSIGN(server->exports_,
             Exports::Start(config.exports, recorder.store.path, *server->recorder_, metrics));
  NOS_RETURN_IF_ERROR(server->Serve());
  return server;
}

// Stops the server first: requests in progress use the other members.
TelemetryServer::~TelemetryServer() { HangUp(); }

Status TelemetryServer::Ready() const {
  if (certificate_ != nullptr) NOS_RETURN_IF_ERROR(certificate_->status());
  return recorder_->Health();
}

Status TelemetryServer::Connect(const Clock& clock) {
  const bool reviews = config_.reporters.any() || !config_.alerts_accounts.empty();
  if (config_.sandbox || (!reviews && config_.service.empty())) return Status::Ok();
  auto connection = kube::LoadConnection(config_.readers.kubeconfig, "");
  if (!connection.ok()) return connection.status().Within("ingest");
  cluster_ = std::make_unique<kube::HttpTransport>(
      *std::move(connection), kube::HttpOptions{.requests_per_second = 400, .burst = 1000});
  if (!config_.alerts_accounts.empty()) {
    ReportersConfig alerters = config_.reporters;
    alerters.accounts = config_.alerts_accounts;
    alerters.node_accounts.clear();
    auto options = ReporterAccess::OptionsOf(alerters);
    if (!options.ok()) return options.status().Within("alerts");
    options->limits = readers_->limits();
    alerters_ = std::make_unique<ReporterAccess>(*cluster_, clock, *std::move(options));
  }
  if (!config_.reporters.any()) return Status::Ok();
  NOS_ASSIGN(ReporterAccess::Options options, ReporterAccess::OptionsOf(config_.reporters));
  options.limits = readers_->limits();
  reporters_ = std::make_unique<ReporterAccess>(*cluster_, clock, std::move(options));
  return Status::Ok();
}

// A token of the file counts as it says there, any other may be a service account's.
Status TelemetryServer::Admit(const net::HttpRequest& request,
                              const telemetry::Envelope* envelope) {
  const std::string_view authorization = request.Header("authorization");
  Status known = tokens_.Check(authorization);
  if (known.ok() && envelope != nullptr) return tokens_.Check(authorization, envelope->cluster);
  if (known.ok() || reporters_ == nullptr) return known;
  return reporters_->Check(request, readers_->AddressOf(request), envelope);
}

// Tokens of reporters do not count: a node's must not raise alarms.
Status TelemetryServer::AdmitAlerts(const net::HttpRequest& request, const std::string& cluster) {
  Status known = alerts_tokens_.Check(request.Header("authorization"), cluster);
  if (known.ok() || alerters_ == nullptr) return known;
  if (cluster != config_.reporters.cluster) {
    return {Code::kPermission,
            fmt::format("service accounts deliver for cluster \"{}\"", config_.reporters.cluster)};
  }
  return alerters_->Check(request, readers_->AddressOf(request), nullptr);
}

Status TelemetryServer::Serve() {
  if (config_.service.empty() || config_.sandbox) return Listen(nullptr);
  // One replica: it always writes.
  certificate_ = std::make_unique<OwnCertificate>(
      CertificateOf(config_), *cluster_, [] { return true; }, "telemetry", kTelemetryCertificateEnd,
      metrics_,
      [this](const std::shared_ptr<net::TlsIdentity>& identity) { return Listen(identity); });
  return Status::Ok();
}

Status TelemetryServer::Listen(std::shared_ptr<net::TlsIdentity> identity) {
  NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(config_.address));
  options.threads = kThreads;
  options.max_connections = 2000;
  options.max_body_bytes = telemetryserver::kMaxIngestBody;
  options.max_held_bytes = kMaxHeld;
  if (!config_.certificate_file.empty()) {
    options.tls = net::TlsFiles{config_.certificate_file, config_.key_file, config_.client_ca_file};
  }
  options.identity = std::move(identity);
  auto server = net::Listen(std::move(options),
                            [this](const net::HttpRequest& request) { return Answer(request); });
  if (!server.ok()) return server.status().Within(config_.address_key + " " + config_.address);
  server_ = std::move(server).value();
  if (config_.sandbox_cluster == nullptr) {  // `nos sandbox` prints the address itself
    Log(LogLevel::kInfo, "serving telemetry",
        {{"address", config_.address}, {"port", std::to_string(server_->port())}});
  }
  return Status::Ok();
}

Status TelemetryServer::ReadTokens() {
  const auto read = [](const std::string& file, telemetryserver::Tokens& to) -> Status {
    if (file.empty()) return Status::Ok();
    NOS_ASSIGN(const std::string text, ReadFile(file, kMaxTokenFile));
    return to.Read(text).Within(file);
  };
  NOS_RETURN_IF_ERROR(read(config_.token_file, tokens_));
  return read(config_.alerts_token_file, alerts_tokens_);
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
