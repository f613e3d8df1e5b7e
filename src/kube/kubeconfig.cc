#include "kube/kubeconfig.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "codec/base64.h"
#include "codec/yaml.h"

namespace nos::kube {
namespace {

Result<std::string> ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || file.bad()) return NotFound(fmt::format("cannot read '{}'", path.string()));
  return text;
}

// The entry of a named list: clusters, contexts, users.
Result<const Json*> Entry(const Json& config, std::string_view list, std::string_view name,
                          std::string_view member) {
  const Json* entries = Find(config, list);
  if (entries != nullptr && entries->is_array()) {
    for (const Json& entry : entries->get_array()) {
      if (FindString(entry, "name") != name) continue;
      const Json* found = Find(entry, member);
      if (found == nullptr || !found->is_object()) break;
      return found;
    }
  }
  return Invalid(fmt::format("no usable entry named '{}' under '{}'", name, list));
}

// `<key>-data` in base64, or the file named by `<key>`; empty when neither is there.
Result<std::string> DataOrFile(const Json& entry, std::string_view key, std::string_view folder) {
  const std::string_view data = FindString(entry, std::string(key) + "-data");
  if (!data.empty()) {
    auto decoded = DecodeBase64(data);
    if (!decoded.ok()) return decoded.status().Within(std::string(key) + "-data");
    return decoded;
  }
  const std::string_view path = FindString(entry, key);
  if (path.empty()) return std::string();
  return ReadAll(std::filesystem::path(folder) / path);
}

Status ReadCluster(const Json& cluster, std::string_view folder, Endpoint& endpoint) {
  endpoint.server = FindString(cluster, "server");
  while (endpoint.server.ends_with('/')) endpoint.server.pop_back();
  if (!endpoint.server.starts_with("http://") && !endpoint.server.starts_with("https://")) {
    return Invalid("the cluster's 'server' must be an http:// or https:// address");
  }
  const Json* insecure = Find(cluster, "insecure-skip-tls-verify");
  if (insecure != nullptr && insecure->is_bool() && insecure->get_bool()) {
    return Invalid(
        "insecure-skip-tls-verify is not supported; give the cluster's certificate-authority");
  }
  NOS_ASSIGN(endpoint.ca_pem, DataOrFile(cluster, "certificate-authority", folder));
  return Status::Ok();
}

Status ReadUser(const Json& user, std::string_view folder, Endpoint& endpoint) {
  if (Find(user, "exec") != nullptr || Find(user, "auth-provider") != nullptr) {
    return {
        Code::kUnimplemented,
        "users that need an exec plugin are not supported; use a token or a client certificate"};
  }
  NOS_ASSIGN(endpoint.client_certificate_pem, DataOrFile(user, "client-certificate", folder));
  NOS_ASSIGN(endpoint.client_key_pem, DataOrFile(user, "client-key", folder));
  endpoint.token = FindString(user, "token");
  const std::string_view token_file = FindString(user, "tokenFile");
  if (endpoint.token.empty() && !token_file.empty()) {
    NOS_ASSIGN(const std::string text, ReadAll(std::filesystem::path(folder) / token_file));
    endpoint.token = Trim(text);
  }
  return Status::Ok();
}

}  // namespace

Result<Endpoint> ParseKubeconfig(std::string_view text, std::string_view context,
                                 std::string_view folder) {
  NOS_ASSIGN(const std::vector<Json> documents, ParseYaml(text));
  if (documents.size() != 1 || !documents[0].is_object()) return Invalid("not a kubeconfig");
  const Json& config = documents[0];
  if (context.empty()) context = FindString(config, "current-context");
  if (context.empty()) return Invalid("no current-context is set; choose one with --context");
  NOS_ASSIGN(const Json* chosen, Entry(config, "contexts", context, "context"));
  NOS_ASSIGN(const Json* cluster,
             Entry(config, "clusters", FindString(*chosen, "cluster"), "cluster"));
  Endpoint endpoint;
  NOS_RETURN_IF_ERROR(ReadCluster(*cluster, folder, endpoint));
  const std::string_view user = FindString(*chosen, "user");
  if (!user.empty()) {
    NOS_ASSIGN(const Json* entry, Entry(config, "users", user, "user"));
    NOS_RETURN_IF_ERROR(ReadUser(*entry, folder, endpoint));
  }
  return endpoint;
}

Result<Endpoint> LoadKubeconfig(const std::string& path, std::string_view context) {
  std::string file = path;
  if (const char* from_env = std::getenv("KUBECONFIG"); file.empty() && from_env != nullptr) {
    file = Split(from_env, ':')[0];
  }
  if (const char* home = std::getenv("HOME"); file.empty() && home != nullptr) {
    file = std::string(home) + "/.kube/config";
  }
  auto text = ReadAll(file);
  if (!text.ok()) return text.status().Within("kubeconfig");
  auto endpoint =
      ParseKubeconfig(*text, context, std::filesystem::path(file).parent_path().string());
  if (!endpoint.ok()) return endpoint.status().Within("kubeconfig '" + file + "'");
  return endpoint;
}

}  // namespace nos::kube
