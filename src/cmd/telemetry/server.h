// The telemetry server as one object: store, API and dashboard. nos telemetry runs it as a daemon.
#pragma once

#include <memory>
#include <string>

#include "base/metrics.h"
#include "cmd/access/reporter_access.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/own_certificate.h"
#include "cmd/daemon/probes.h"
#include "cmd/telemetry/exports.h"
#include "cmd/telemetry/readers.h"
#include "gpu/catalogue.h"
#include "telemetryserver/alerts.h"
#include "telemetryserver/api.h"
#include "telemetryserver/cost.h"

namespace nos::cmd {

struct TelemetryServerConfig {
  std::string address = "127.0.0.1:8090";
  std::string address_key = "listen.bindAddress";  // configuration key or flag that set it
  std::string certificate_file, key_file, client_ca_file;
  bool plaintext = false;  // also on addresses that other machines can reach
  // For a certificate of its own: the Service that it names ("": none), the Secret that keeps it,
  // the ConfigMap with its authority, and further namespaces with such a ConfigMap, with commas.
  std::string service, secret = "nos-telemetry-certificate", ca_config_map = "nos-telemetry-ca",
                       ca_namespaces;
  Duration certificate_lifetime = std::chrono::hours(24 * 90);
  std::string token_file;
  ReportersConfig reporters;
  // The senders that may deliver alerts; both "": none may.
  std::string alerts_token_file, alerts_accounts;
  int64_t max_megabytes = 0;
  telemetryserver::RecorderOptions recorder;
  ReadersConfig readers;
  ExportsConfig exports;
  telemetryserver::PriceList prices;
  // All users of this machine, and no other machine, may write and read everything.
  bool sandbox = false;
  // A sandbox in a container, whose engine decides who reaches the address. Requests must still
  // name this machine as their host.
  bool published = false;
  kube::Transport* sandbox_cluster = nullptr;  // cluster for what-if and submit; null: disabled
  // True if its nos scheduler partitions GPUs.
  scheduling::PartitionedBy sandbox_partitions = scheduling::PartitionedBy::kScheduler;
};
void DescribeTelemetryServer(ConfigFields& fields, TelemetryServerConfig& config);

class TelemetryServer {
 public:
  // Serves when it returns, or as soon as it has a certificate of its own. Errors: kInvalid (an
  // unsafe or invalid configuration), kUnavailable (address in use), see
  // telemetryserver::Recorder::Open.
  static Result<std::unique_ptr<TelemetryServer>> Start(const TelemetryServerConfig& config,
                                                        const gpu::Catalogue& catalogue,
                                                        const Clock& clock, Metrics& metrics);
  ~TelemetryServer();
  TelemetryServer(const TelemetryServer&) = delete;
  TelemetryServer& operator=(const TelemetryServer&) = delete;

  // REQUIRES: it serves.
  uint16_t port() const { return server_->port(); }
  // OK if it serves, and records can be stored.
  Status Ready() const;
  void Report() { recorder_->Report(); }
  // Adds closed hours to the metrics of costs. Call it about once a minute, from one thread.
  void CountCosts() { costs_->Count(metrics_); }
  // Reloads the token files. On an error the previous tokens stay valid.
  Status ReadTokens();
  // Also serves /healthz, /readyz and /metrics from now on. `probes` must live until HangUp.
  void Show(Probes& probes) { probes_ = &probes; }
  // Stops serving.
  void HangUp() {
    certificate_.reset();
    server_.reset();
  }
  telemetryserver::Recorder& recorder() { return *recorder_; }

 private:
  TelemetryServer(const TelemetryServerConfig& config, Metrics& metrics)
      : config_(config), metrics_(metrics) {}
  net::HttpResponse Answer(const net::HttpRequest& request);
  // May this client deliver? See telemetryserver::Ingest::Admit.
  Status Admit(const net::HttpRequest& request, const telemetry::Envelope* envelope);
  Status AdmitAlerts(const net::HttpRequest& request, const std::string& cluster);
  bool ReceivesAlerts() const {
    return config_.sandbox || !config_.alerts_token_file.empty() ||
           !config_.alerts_accounts.empty();
  }
  Status Connect(const Clock& clock);
  Status Serve();
  Status Listen(std::shared_ptr<net::TlsIdentity> identity);
  bool SpeaksTls() const {
    return !config_.certificate_file.empty() || (!config_.service.empty() && !config_.sandbox);
  }

  const TelemetryServerConfig config_;
  Metrics& metrics_;
  telemetryserver::Tokens tokens_, alerts_tokens_;
  telemetryserver::StreamHub hub_;
  std::unique_ptr<telemetryserver::Recorder> recorder_;
  std::unique_ptr<TelemetryReaders> readers_;
  // The cluster that reviews reporters and keeps the certificate; null: neither is configured.
  std::unique_ptr<kube::HttpTransport> cluster_;
  std::unique_ptr<ReporterAccess> reporters_;  // null: service accounts may not deliver
  std::unique_ptr<ReporterAccess> alerters_;   // null: service accounts may not deliver alerts
  std::unique_ptr<Exports> exports_;
  std::unique_ptr<telemetryserver::Ingest> ingest_;
  std::unique_ptr<telemetryserver::AlertReceiver> alerts_;  // null: none are received
  std::unique_ptr<telemetryserver::Costs> costs_;
  std::unique_ptr<telemetryserver::Api> api_;
  std::atomic<Probes*> probes_{nullptr};
  std::unique_ptr<net::HttpServer> server_;  // uses the members above
  std::unique_ptr<OwnCertificate>
      certificate_;  // null: from files, or none. Its thread sets server_
};

}  // namespace nos::cmd
