#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "kube/connection.h"
#include "kube/transport/environment.h"

namespace nos::kube {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;  // limit for a kubeconfig

// One of the files that together form the configuration.
struct File {
  Json root;
  std::string folder;
};

struct Entry {
  const Json* value = nullptr;
  std::string_view folder;
};

// Finds an entry of a named list: clusters, contexts, users. The first file with that entry wins.
Result<Entry> FindEntry(const std::vector<File>& files, std::string_view list,
                        std::string_view name, std::string_view member) {
  for (const File& file : files) {
    const Json* entries = Find(file.root, list);
    if (entries == nullptr || !entries->is_array()) continue;
    for (const Json& entry : entries->get_array()) {
      if (FindString(entry, "name") != name) continue;
      const Json* found = Find(entry, member);
      if (found != nullptr && found->is_object()) return Entry{found, file.folder};
      break;
    }
  }
  return Invalid(fmt::format("no usable entry named '{}' under '{}'", name, list));
}

std::string InFolder(std::string_view folder, std::string_view path) {
  return (std::filesystem::path(folder) / path).string();
}

// `<key>-data` in base64, or the file named by `<key>`; empty if both are missing.
Result<Secret> DataOrFile(const Entry& entry, std::string_view key) {
  const std::string_view data = FindString(*entry.value, std::string(key) + "-data");
  if (!data.empty()) {
    auto decoded = DecodeBase64(data);
    if (!decoded.ok()) return decoded.status().Within(std::string(key) + "-data");
    return Secret{*std::move(decoded), {}};
  }
  const std::string_view path = FindString(*entry.value, key);
  return path.empty() ? Secret() : Secret{{}, InFolder(entry.folder, path)};
}

bool IsTrue(const Json& object, std::string_view key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

Status ReadCluster(const Entry& cluster, ConnectionConfig& config) {
  config.server = FindString(*cluster.value, "server");
  while (config.server.ends_with('/')) config.server.pop_back();
  if (!config.server.starts_with("http://") && !config.server.starts_with("https://")) {
    return Invalid("the cluster's 'server' must be an http:// or https:// address");
  }
  if (IsTrue(*cluster.value, "insecure-skip-tls-verify")) {
    return Invalid(
        "insecure-skip-tls-verify is not supported; give the cluster's certificate-authority");
  }
  config.tls_server_name = FindString(*cluster.value, "tls-server-name");
  config.proxy_url = FindString(*cluster.value, "proxy-url");
  NOS_ASSIGN(config.ca, DataOrFile(cluster, "certificate-authority"));
  return Status::Ok();
}

Result<ExecPlugin> ReadExec(const Json& exec, std::string_view folder) {
  ExecPlugin plugin;
  plugin.api_version = FindString(exec, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Invalid(fmt::format(
        "exec: apiVersion '{}' is not supported; client.authentication.k8s.io/v1 and v1beta1 are",
        plugin.api_version));
  }
  plugin.command = FindString(exec, "command");
  if (plugin.command.empty()) return Invalid("exec: no command");
  // A bare name is looked up in $PATH, a relative path beside the kubeconfig.
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = InFolder(folder, plugin.command);
  }
  plugin.install_hint = FindString(exec, "installHint");
  plugin.provide_cluster_info = IsTrue(exec, "provideClusterInfo");
  if (const Json* list = Find(exec, "args"); list != nullptr && list->is_array()) {
    for (const Json& item : list->get_array()) {
      if (!item.is_string()) return Invalid("exec: args must be strings");
      plugin.arguments.emplace_back(View(item.get_string()));
    }
  }
  if (const Json* list = Find(exec, "env"); list != nullptr && list->is_array()) {
    for (const Json& item : list->get_array()) {
      plugin.environment.emplace_back(FindString(item, "name"), FindString(item, "value"));
    }
  }
  return plugin;
}

Status ReadUser(const Entry& user, ConnectionConfig& config) {
  if (Find(*user.value, "auth-provider") != nullptr) {
    return Invalid("auth-provider is not supported, as in kubectl since 1.26; use an exec plugin");
  }
  if (const Json* exec = Find(*user.value, "exec"); exec != nullptr && exec->is_object()) {
    NOS_ASSIGN(config.exec, ReadExec(*exec, user.folder));
  }
  NOS_ASSIGN(config.client_certificate, DataOrFile(user, "client-certificate"));
  NOS_ASSIGN(config.client_key, DataOrFile(user, "client-key"));
  if (config.client_certificate.empty() != config.client_key.empty()) {
    return Invalid("a user needs both client-certificate and client-key, or neither");
  }
  config.token.text = FindString(*user.value, "token");
  const std::string_view token_file = FindString(*user.value, "tokenFile");
  if (!token_file.empty()) config.token = {{}, InFolder(user.folder, token_file)};
  return Status::Ok();
}

Result<ConnectionConfig> Choose(const std::vector<File>& files, std::string_view context) {
  for (const File& file : files) {
    if (context.empty()) context = FindString(file.root, "current-context");
  }
  if (context.empty()) return Invalid("no current-context is set; choose one with --context");
  NOS_ASSIGN(const Entry chosen, FindEntry(files, "contexts", context, "context"));
  NOS_ASSIGN(const Entry cluster,
             FindEntry(files, "clusters", FindString(*chosen.value, "cluster"), "cluster"));
  ConnectionConfig config;
  NOS_RETURN_IF_ERROR(ReadCluster(cluster, config));
  const std::string_view user = FindString(*chosen.value, "user");
  if (!user.empty()) {
    NOS_ASSIGN(const Entry entry, FindEntry(files, "users", user, "user"));
    NOS_RETURN_IF_ERROR(ReadUser(entry, config));
  }
  return config;
}

Result<File> ParseFile(std::string_view text, std::string_view folder) {
  NOS_ASSIGN(std::vector<Json> documents, ParseYaml(text));
  if (documents.size() != 1 || !documents[0].is_object()) return Invalid("not a kubeconfig");
  return File{std::move(documents[0]), std::string(folder)};
}

Result<ConnectionConfig> FromFiles(const std::vector<std::string>& paths,
                                   std::string_view context) {
  std::vector<File> files;
  for (const std::string& path : paths) {
    auto text = ReadFile(path, kMaxBytes);
    if (!text.ok()) return text.status().Within("kubeconfig");
    auto file = ParseFile(*text, std::filesystem::path(path).parent_path().string());
    if (!file.ok()) return file.status().Within("kubeconfig '" + path + "'");
    files.push_back(*std::move(file));
  }
  auto config = Choose(files, context);
  if (!config.ok()) return config.status().Within("kubeconfig '" + paths[0] + "'");
  return config;
}

}  // namespace

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): variables are never set
  return value == nullptr ? "" : value;
}

Result<ConnectionConfig> ParseKubeconfig(std::string_view text, std::string_view context,
                                         std::string_view folder) {
  NOS_ASSIGN(File file, ParseFile(text, folder));
  std::vector<File> files;
  files.push_back(std::move(file));
  return Choose(files, context);
}

Result<ConnectionConfig> LoadConnection(const std::string& path, std::string_view context) {
  if (!path.empty()) return FromFiles({path}, context);
  std::vector<std::string> paths;
  const std::string from_environment = FromEnvironment("KUBECONFIG");
  for (const std::string_view each : Split(from_environment, ':')) {
    if (!each.empty()) paths.emplace_back(each);
  }
  // Like kubectl: missing files are skipped, unless all are missing.
  const auto missing = [](const std::string& file) { return !std::filesystem::exists(file); };
  if (!std::all_of(paths.begin(), paths.end(), missing)) std::erase_if(paths, missing);
  if (!paths.empty()) return FromFiles(paths, context);
  if (auto in_cluster = InCluster(); in_cluster.ok()) return in_cluster;
  return FromFiles({FromEnvironment("HOME") + "/.kube/config"}, context);
}

}  // namespace nos::kube
