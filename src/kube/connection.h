// Address and credentials of the API server, kept fresh: certificates and tokens in files are
// rotated, exec plugins issue credentials that expire.
//
//   NOS_ASSIGN(ConnectionConfig config, LoadConnection(path, context));
//   Connection connection(std::move(config));
//   NOS_ASSIGN(auto identity, connection.Current());   // before every request
//   connection.Rejected();                             // the server answered 401
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace nos::kube {

// Given as text, or as a file that may change; both empty: not given.
struct Secret {
  std::string text, file;
  bool empty() const { return text.empty() && file.empty(); }
};

// A program that prints an ExecCredential.
// Source: k8s.io/client-go, apis clientauthentication v1 and v1beta1.
struct ExecPlugin {
  std::string api_version, command, install_hint;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  bool provide_cluster_info = false;
};

struct ConnectionConfig {
  std::string server;  // "https://10.0.0.1:6443", no trailing slash
  std::string tls_server_name, proxy_url;
  Secret ca;  // empty: the system's roots
  Secret client_certificate, client_key, token;
  std::optional<ExecPlugin> exec;
  // If not empty, requests impersonate this user and these groups. REQUIRES: no control characters.
  std::string as_user{};
  std::vector<std::string> as_groups{};
};

// The credentials for a request sent now.
struct Identity {
  std::string ca_pem, client_certificate_pem, client_key_pem, token;
};

// Thread-safe.
class Connection {
 public:
  explicit Connection(ConnectionConfig config) : config_(std::move(config)) {}

  const ConnectionConfig& config() const { return config_; }
  // Checks its files at most every ten seconds, and runs the plugin again when its credential has
  // expired. Errors: kNotFound (a file), kPermission with the plugin's error text.
  Result<std::shared_ptr<const Identity>> Current();
  // Call this after the server refused the identity (401): the next Current() reads or requests it
  // again.
  void Rejected();

 private:
  using Steady = std::chrono::steady_clock::time_point;

  Result<Identity> Read();

  const ConnectionConfig config_;
  std::mutex mutex_;
  std::shared_ptr<const Identity> identity_;
  Steady read_at_{};
  std::optional<Time> expires_;  // expiry of the plugin's credential
};

// `context`: empty for the file's current-context. File names are resolved against `folder`. TLS
// verification cannot be switched off: insecure-skip-tls-verify is refused.
// Error: kInvalid naming the missing or invalid field.
Result<ConnectionConfig> ParseKubeconfig(std::string_view text, std::string_view context,
                                         std::string_view folder);

// Loads from `path`; if empty, from all files of $KUBECONFIG merged (the first file that sets a
// value wins), else from the service account of a pod, else from ~/.kube/config.
// Errors: kNotFound for a file, kInvalid.
Result<ConnectionConfig> LoadConnection(const std::string& path, std::string_view context);

// The service account's connection, for a pod of the cluster. Error: kNotFound: not in a cluster.
// Source: Kubernetes documentation, "Accessing the Kubernetes API from a Pod".
Result<ConnectionConfig> InCluster();

}  // namespace nos::kube
