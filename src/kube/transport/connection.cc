#include "kube/connection.h"

#include <fmt/core.h>

#include "base/file.h"
#include "base/text.h"
#include "kube/transport/environment.h"
#include "kube/transport/exec_plugin.h"

namespace nos::kube {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;  // limit for a certificate, key or token
constexpr std::chrono::seconds kLookAgain{10};
// A credential is renewed this long before it expires, so that no request in flight uses an expired
// one.
constexpr std::chrono::seconds kMargin{10};

Result<std::string> Value(const Secret& secret) {
  return secret.file.empty() ? Result<std::string>(secret.text) : ReadFile(secret.file, kMaxBytes);
}

}  // namespace

Result<Identity> Connection::Read() {
  Identity identity;
  NOS_ASSIGN(identity.ca_pem, Value(config_.ca));
  NOS_ASSIGN(identity.client_certificate_pem, Value(config_.client_certificate));
  NOS_ASSIGN(identity.client_key_pem, Value(config_.client_key));
  NOS_ASSIGN(const std::string token, Value(config_.token));
  identity.token = Trim(token);
  if (config_.exec) {
    NOS_ASSIGN(ExecCredential given, RunExecPlugin(*config_.exec, config_, identity.ca_pem));
    expires_ = given.expires;
    if (!given.token.empty()) identity.token = std::move(given.token);
    if (!given.client_certificate_pem.empty()) {
      identity.client_certificate_pem = std::move(given.client_certificate_pem);
      identity.client_key_pem = std::move(given.client_key_pem);
    }
  }
  return identity;
}

Result<std::shared_ptr<const Identity>> Connection::Current() {
  const std::scoped_lock lock(mutex_);
  const Steady now = std::chrono::steady_clock::now();
  const bool fresh = config_.exec ? !expires_ || SystemClock().Now() < *expires_ - kMargin
                                  : now - read_at_ < kLookAgain;
  if (identity_ != nullptr && fresh) return identity_;
  Result<Identity> identity = Read();
  if (identity.ok()) {
    identity_ = std::make_shared<const Identity>(*std::move(identity));
  } else if (identity_ == nullptr || config_.exec) {
    return identity.status();
  }  // else: the file is being replaced; keep the last content
  read_at_ = now;
  return identity_;
}

void Connection::Rejected() {
  const std::scoped_lock lock(mutex_);
  identity_ = nullptr;
}

Result<ConnectionConfig> InCluster() {
  constexpr std::string_view kFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
  const std::string host = FromEnvironment("KUBERNETES_SERVICE_HOST");
  const std::string port = FromEnvironment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return NotFound("not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  }
  ConnectionConfig config;
  const bool v6 = host.find(':') != std::string_view::npos;
  config.server =
      v6 ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
  config.ca.file = fmt::format("{}/ca.crt", kFolder);
  config.token.file = fmt::format("{}/token", kFolder);
  return config;
}

}  // namespace nos::kube
