#include "kube/transport/exec_plugin.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/process.h"
#include "codec/base64.h"
#include "codec/json.h"

namespace nos::kube {
namespace {

constexpr std::chrono::seconds kTimeout{60};
constexpr size_t kMaxOutput = size_t{1} << 20;  // bytes
constexpr int kMaxArguments = 1000;

std::string ExecInfo(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                     std::string_view ca_pem) {
  JsonObject spec{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    spec["cluster"] = {{"server", cluster.server},
                       {"tls-server-name", cluster.tls_server_name},
                       {"certificate-authority-data", EncodeBase64(ca_pem)}};
  }
  return WriteJson(JsonObject{
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}});
}

std::vector<std::string> Environment(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                                     std::string_view ca_pem) {
  std::vector<std::string> all = OwnEnvironment();
  for (const auto& [name, value] : plugin.environment) {
    const std::string start = fmt::format("{}=", name);
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(start); });
    all.push_back(start + value);
  }
  all.push_back("KUBERNETES_EXEC_INFO=" + ExecInfo(plugin, cluster, ca_pem));
  return all;
}

Result<std::string> Run(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                        std::string_view ca_pem) {
  if (plugin.arguments.size() > kMaxArguments) return Invalid("has too many arguments");
  Program program{{plugin.command}, Environment(plugin, cluster, ca_pem)};
  program.arguments.insert(program.arguments.end(), plugin.arguments.begin(),
                           plugin.arguments.end());
  NOS_ASSIGN(ProgramEnd end, RunProgram(std::move(program), {.within = kTimeout,
                                                             .max_output = kMaxOutput,
                                                             .error_output = Stderr::kInherit}));
  if (end.how != "exit status 0") return Status(Code::kPermission, "ended with " + end.how);
  return std::move(end.output);
}

Result<ExecCredential> Parse(std::string_view text, std::string_view api_version) {
  NOS_ASSIGN(const Json json, ParseJson(text));
  if (FindString(json, "kind") != "ExecCredential") return Invalid("printed no ExecCredential");
  if (FindString(json, "apiVersion") != api_version) {
    return Invalid(fmt::format("printed apiVersion '{}', not '{}'", FindString(json, "apiVersion"),
                               api_version));
  }
  ExecCredential credential;
  credential.token = FindString(json, "status", "token");
  credential.client_certificate_pem = FindString(json, "status", "clientCertificateData");
  credential.client_key_pem = FindString(json, "status", "clientKeyData");
  const bool pair =
      !credential.client_certificate_pem.empty() && !credential.client_key_pem.empty();
  if (credential.token.empty() && !pair) return Invalid("gave neither token nor certificate");
  const std::string_view expires = FindString(json, "status", "expirationTimestamp");
  if (!expires.empty()) {
    NOS_ASSIGN(credential.expires, ParseTime(expires));
  }
  return credential;
}

}  // namespace

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                                     std::string_view ca_pem) {
  const auto explain = [&](const Status& status) {
    const Code code = status.code() == Code::kDeadline ? Code::kDeadline : Code::kPermission;
    std::string message =
        fmt::format("credential plugin '{}': {}", plugin.command, status.message());
    if (!plugin.install_hint.empty()) message += "; " + plugin.install_hint;
    return Status(code, std::move(message));
  };
  const auto text = Run(plugin, cluster, ca_pem);
  if (!text.ok()) return explain(text.status());
  auto credential = Parse(*text, plugin.api_version);
  if (!credential.ok()) return explain(credential.status());
  return credential;
}

}  // namespace nos::kube
