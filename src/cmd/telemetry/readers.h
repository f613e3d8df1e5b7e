// Readers of telemetry: sign-in, rights, limits, actions, and their audit log. Contains all that
// the telemetry server knows about users.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "cmd/access/oidc.h"
#include "cmd/access/reader_access.h"
#include "cmd/daemon/config_file.h"
#include "cmd/telemetry/cluster_actions.h"
#include "gpu/catalogue.h"
#include "kube/connection.h"
#include "kube/http_transport.h"
#include "net/client_address.h"
#include "telemetryserver/audit.h"
#include "telemetryserver/limits.h"
#include "telemetryserver/reader.h"

namespace nos::cmd {

struct ReadersConfig {
  // Readers are users of the cluster that this server runs in, or of the kubeconfig's cluster.
  bool kubernetes = false;
  std::string kubeconfig;
  // Audience of tokens for this server alone, and whether those for the API server count too.
  std::string audience = "nos-telemetry-readers";
  bool cluster_tokens = true;
  OidcConfig oidc{};
  ActionsConfig actions{};
  telemetryserver::LimitOptions limits;
  std::string audit_file;
  int64_t audit_megabytes = 16;
  std::string proxies;
  // All users of this machine may do everything. Actions use `sandbox_cluster`; null: no actions.
  bool sandbox = false;
  kube::Transport* sandbox_cluster = nullptr;
  scheduling::PartitionedBy sandbox_partitions = scheduling::PartitionedBy::kScheduler;
};
// Fields of the groups readers, actions, limits and audit.
void DescribeReaders(ConfigFields& fields, ReadersConfig& config);

class TelemetryReaders {
 public:
  struct Parts {
    const Clock& clock;
    const gpu::Catalogue& catalogue;
    // Namespaces with records.
    std::function<std::set<std::string>()> namespaces;
  };
  // Errors: kInvalid (the configuration is not possible).
  static Result<std::unique_ptr<TelemetryReaders>> Make(const ReadersConfig& config,
                                                        const Parts& parts);

  // Thread-safe, as is the whole class.
  Result<telemetryserver::Reader> Authenticate(const net::HttpRequest& request);
  // See ReaderRights.
  Result<bool> Sees(const telemetryserver::Reader& reader, const std::string& ns) {
    return access_ == nullptr ? reader.May(ns) : access_->Sees(reader, ns);
  }
  // Handles sign-in and sign-out; nullopt for any other request.
  std::optional<net::HttpResponse> Answer(const net::HttpRequest& request);
  // Path of the sign-in page, relative to the dashboard; "" if browsers cannot sign in.
  std::string sign_in() const { return oidc_ != nullptr && oidc_->has_login() ? "login" : ""; }
  std::string AddressOf(const net::HttpRequest& request) const;
  // Null if not configured.
  telemetryserver::Actions* actions() { return actions_.get(); }
  telemetryserver::Limits* limits() { return limits_.get(); }
  telemetryserver::Audit* audit() { return config_.sandbox ? nullptr : audit_.get(); }

 private:
  TelemetryReaders(const ReadersConfig& config, const Clock& clock)
      : config_(config), clock_(clock) {}
  Status Connect(const Parts& parts);
  Status AllowActions(const Parts& parts);
  // A connection with the reader's own rights.
  Result<std::shared_ptr<kube::Transport>> AsReader(const telemetryserver::ActionCall& call) const;

  const ReadersConfig config_;
  const Clock& clock_;
  net::TrustedProxies proxies_;
  mutable std::atomic<bool> warned_{false};  // of a proxy that is not trusted
  std::unique_ptr<telemetryserver::Limits> limits_;
  std::unique_ptr<telemetryserver::Audit> audit_;
  kube::ConnectionConfig connection_;
  std::unique_ptr<kube::HttpTransport>
      cluster_;                       // null: readers are not authenticated by a cluster
  std::unique_ptr<OidcSignIn> oidc_;  // null: disabled
  std::unique_ptr<ReaderAccess> access_;
  std::unique_ptr<ClusterActions> actions_;  // last: uses the other members
};

}  // namespace nos::cmd
