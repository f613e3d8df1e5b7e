#include "cmd/telemetry/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "telemetryserver/api.h"

namespace nos::cmd {
namespace {

using telemetryserver::ActionCall;
using telemetryserver::Reader;

constexpr std::string_view kBearer = "Bearer ";

Reader SandboxReader() {
  Reader reader{"sandbox", true, {}};
  reader.may_create = reader.has_cluster_token = true;
  return reader;
}

// Text that is safe in an HTTP header.
bool IsClean(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
}

}  // namespace

void DescribeReaders(ConfigFields& f, ReadersConfig& c) {
  f.Group("readers", [&] {
    f.Flag("kubernetes", c.kubernetes,
           "Users with a cluster token may read the namespaces in which they can list pods, and "
           "everything if they can list pods in all. The server needs the right to create "
           "TokenReviews and SubjectAccessReviews. False: disabled.");
    f.Text("kubeconfig", c.kubeconfig,
           "Kubeconfig of the cluster. Empty: the cluster that this server runs in.");
    f.Text("audience", c.audience,
           "Audience of cluster tokens that are for this server alone (kubectl create token NAME "
           "--audience AUDIENCE). Not that of ingest. Empty: none.");
    f.Flag("clusterTokens", c.cluster_tokens,
           "Tokens for the API server count too: kubectl's, and those that nos top sends. An "
           "intruder in the server could act with them.");
    f.Group("oidc", [&] { DescribeOidc(f, c.oidc); });
  });
  f.Group("actions", [&] { DescribeActions(f, c.actions); });
  f.Group("limits", [&] {
    f.Number(
        "requestsPerSecondOfAddress", c.limits.address_per_second, 0, 1'000'000,
        "Requests of readers; bursts may be five times as large. 0: no limit, here and below.");
    f.Number("requestsPerSecondOfReader", c.limits.reader_per_second, 0, 1'000'000,
             "Requests of one signed-in user, from any address.");
    f.Number("actionsPerMinute", c.limits.actions_per_minute, 0, 1'000'000,
             "What-if and submit requests of one reader.");
    f.Number("failuresPerMinute", c.limits.failures_per_minute, 0, 1'000'000,
             "Failed sign-ins from one address; from all addresses together five times as many.");
    f.Text("trustedProxies", c.proxies,
           "Addresses and networks (10.0.0.0/8, fd00::1), separated by commas, whose "
           "X-Forwarded-For is trusted.");
  });
  f.Group("audit", [&] {
    f.Text("file", c.audit_file,
           "File of the audit log, one line of JSON per action, in addition to the log. Empty: the "
           "log alone.");
    f.Number("maxMegabytes", c.audit_megabytes, 1, 100'000,
             "Size at which the file is renamed to FILE.1, replacing an older FILE.1.");
  });
}

Result<std::unique_ptr<TelemetryReaders>> TelemetryReaders::Make(const ReadersConfig& config,
                                                                 const Parts& parts) {
  std::unique_ptr<TelemetryReaders> readers(new TelemetryReaders(config, parts.clock));
  auto proxies = net::TrustedProxies::Parse(config.proxies);
  NOS_RETURN_IF_ERROR(proxies.status().Within("limits.trustedProxies"));
  readers->proxies_ = *std::move(proxies);
  const auto most = static_cast<uint64_t>(config.audit_megabytes) << 20;
  auto audit = telemetryserver::Audit::Open(config.audit_file, most);
  NOS_RETURN_IF_ERROR(audit.status().Within("audit.file"));
  readers->audit_ = *std::move(audit);
  if (!config.sandbox) readers->limits_ = std::make_unique<telemetryserver::Limits>(config.limits);
  NOS_RETURN_IF_ERROR(readers->Connect(parts));
  NOS_RETURN_IF_ERROR(readers->AllowActions(parts));
  return readers;
}

Status TelemetryReaders::Connect(const Parts& parts) {
  if ((!config_.kubernetes && !config_.oidc.on()) || config_.sandbox) return Status::Ok();
  if (config_.oidc.on()) {
    auto oidc = OidcSignIn::Make(config_.oidc, parts.clock);
    if (!oidc.ok()) return oidc.status().Within("readers.oidc");
    oidc_ = *std::move(oidc);
  }
  auto connection = kube::LoadConnection(config_.kubeconfig, "");
  if (!connection.ok()) return connection.status().Within("readers");
  connection_ = *std::move(connection);
  // Determining a reader's rights takes some hundred reviews at once.
  cluster_ = std::make_unique<kube::HttpTransport>(
      connection_, kube::HttpOptions{.requests_per_second = 400, .burst = 1000});
  ReaderAccess::Options options;
  options.limits = limits_.get();
  options.ask_create = config_.actions.what_if || config_.actions.submit;
  options.review_tokens = config_.kubernetes;
  options.audience = config_.audience;
  options.cluster_tokens = config_.cluster_tokens;
  if (oidc_ != nullptr) {
    options.identify = [this](const std::string& token) -> std::optional<Result<Json>> {
      // A token for kubectl, if the cluster uses the same provider: the cluster reviews it.
      if (config_.kubernetes && oidc_->IsForOthers(token)) return std::nullopt;
      return oidc_->Identify(token);
    };
  }
  access_ =
      std::make_unique<ReaderAccess>(*cluster_, parts.clock, parts.namespaces, std::move(options));
  return Status::Ok();
}

Status TelemetryReaders::AllowActions(const Parts& parts) {
  ActionsConfig config = config_.actions;
  if (config_.sandbox) {
    config = {.what_if = true, .submit = true};
    config.partitioned_by = config_.sandbox_partitions;
  }
  kube::Transport* const cluster = config_.sandbox ? config_.sandbox_cluster : cluster_.get();
  if (!config.what_if && !config.submit) return Status::Ok();
  if (cluster == nullptr && config_.sandbox) return Status::Ok();
  if (cluster == nullptr) {
    return Invalid(
        "actions: only readers authenticated by a cluster may act: set readers.kubernetes or "
        "readers.oidc");
  }
  ClusterActions::Parts with{
      .transport = *cluster,
      .as_reader = [this](const ActionCall& call) { return AsReader(call); },
      .may_create = [this](const Reader& reader, const std::string& ns) -> Result<bool> {
        return access_ == nullptr ? true : access_->MayCreate(reader, ns);
      },
      .catalogue = parts.catalogue};
  NOS_ASSIGN(actions_, ClusterActions::Make(std::move(config), std::move(with)));
  return Status::Ok();
}

Result<Reader> TelemetryReaders::Authenticate(const net::HttpRequest& request) {
  if (config_.sandbox) return SandboxReader();
  if (oidc_ != nullptr && request.Header("authorization").empty()) {
    if (const auto subject = oidc_->SubjectOf(request)) return access_->OfSubject(*subject);
  }
  if (access_ != nullptr) return access_->Of(request, AddressOf(request));
  return Status(
      Code::kPermission,
      "readers cannot be authenticated: set readers.kubernetes or readers.oidc in the "
      "configuration of nos telemetry, or try it with --sandbox on a machine of your own");
}

std::string TelemetryReaders::AddressOf(const net::HttpRequest& request) const {
  if (proxies_.Ignores(request) && !warned_.exchange(true)) {
    Log(LogLevel::kWarn,
        "ignoring X-Forwarded-For of a proxy that is not in readers.trustedProxies: all clients "
        "behind it count as one",
        {{"address", proxies_.ClientOf(request)}});
  }
  return proxies_.ClientOf(request);
}

std::optional<net::HttpResponse> TelemetryReaders::Answer(const net::HttpRequest& request) {
  if (oidc_ == nullptr ||
      !(request.target.starts_with("/login") || request.target.starts_with("/logout"))) {
    return std::nullopt;
  }
  const std::string address = AddressOf(request), network = net::NetworkOf(address);
  const Time now = clock_.Now();
  const Duration wait =
      std::max(limits_->address.Take(network, now), limits_->failures.Wait(network, now));
  if (wait > Duration(0)) {
    return telemetryserver::TooManyAnswer(
        "too many requests or failed attempts to sign in: retry later", wait);
  }
  return oidc_->Answer(request, [&](const char* action, const std::string& who, const Status& how) {
    const bool refused = how.code() == Code::kPermission;
    if (refused) (void)limits_->failures.Take(network, now);
    const telemetryserver::Audit::Entry entry{
        action,       who, address, "", "", how.ok() ? "done" : refused ? "refused" : "failed",
        how.message()};
    how.ok() ? audit_->Write(entry, now) : audit_->WriteBounded(entry, now);
  });
}

Result<std::shared_ptr<kube::Transport>> TelemetryReaders::AsReader(const ActionCall& call) const {
  if (config_.sandbox) {
    return std::shared_ptr<kube::Transport>(config_.sandbox_cluster, [](kube::Transport*) {});
  }
  kube::ConnectionConfig connection = connection_;
  if (call.reader.has_cluster_token) {
    const std::string_view header = call.request.Header("authorization");
    connection.client_certificate = connection.client_key = {};
    connection.exec.reset();
    connection.token = {.text = std::string(header.substr(kBearer.size())), .file = {}};
    if (!header.starts_with(kBearer) || !IsClean(connection.token.text)) {
      return Status(Code::kPermission, "the token cannot be passed on");
    }
  } else if (config_.actions.impersonate) {
    connection.as_user = call.reader.user;
    const Json* groups = Find(call.reader.subject, "groups");
    for (const Json& group : groups == nullptr ? JsonArray() : groups->get_array()) {
      // The API server adds system:authenticated itself.
      if (group != Json("system:authenticated")) {
        connection.as_groups.emplace_back(View(group.get_string()));
      }
    }
    if (!IsClean(connection.as_user) || !std::ranges::all_of(connection.as_groups, IsClean)) {
      return Status(Code::kPermission,
                    "your name, or that of one of your groups, has control characters");
    }
  } else {
    return Status(Code::kUnimplemented,
                  "your token is for this server alone, or you signed in with OpenID Connect, and "
                  "this server does not impersonate users: see actions.impersonate in its "
                  "configuration");
  }
  return std::shared_ptr<kube::Transport>(
      std::make_shared<kube::HttpTransport>(std::move(connection), kube::HttpOptions{}));
}

}  // namespace nos::cmd
