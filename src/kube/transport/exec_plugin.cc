#include "kube/transport/exec_plugin.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/argv.h"
#include "codec/base64.h"
#include "codec/json.h"

namespace nos::kube {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr size_t kMaxOutput = size_t{1} << 20;  // bytes
constexpr int kMaxArguments = 1000;

std::string Words(int fault) { return std::generic_category().message(fault); }

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
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  for (const auto& [name, value] : plugin.environment) {
    const std::string start = fmt::format("{}=", name);
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(start); });
    all.push_back(start + value);
  }
  all.push_back("KUBERNETES_EXEC_INFO=" + ExecInfo(plugin, cluster, ca_pem));
  return all;
}

// Returns the child's process id; its stdout is the write end of `pipe`.
Result<pid_t> Spawn(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                    std::string_view ca_pem, const int (&pipe)[2]) {
  std::vector<std::string> arguments{plugin.command};
  arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> environment = Environment(plugin, cluster, ca_pem);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr,
                                 ArgvOf(arguments).data(), ArgvOf(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0) return Status(Code::kPermission, Words(fault));
  return child;
}

// Reads until the other end closes.
Result<std::string> ReadAll(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd readable{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&readable, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Status(Code::kDeadline, "gave nothing within a minute");
    char buffer[4096];
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status(Code::kPermission, Words(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxOutput) return Status(Code::kPermission, "printed more than 1 MiB");
  }
}

Result<std::string> Run(const ExecPlugin& plugin, const ConnectionConfig& cluster,
                        std::string_view ca_pem) {
  if (plugin.arguments.size() > kMaxArguments) return Invalid("has too many arguments");
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return Status(Code::kUnavailable, Words(errno));
  const Result<pid_t> child = Spawn(plugin, cluster, ca_pem, pipe);
  (void)close(pipe[1]);
  Result<std::string> text = child.ok() ? ReadAll(pipe[0]) : Result<std::string>(child.status());
  (void)close(pipe[0]);
  if (!child.ok()) return text;
  if (!text.ok()) (void)kill(*child, SIGKILL);
  int result = 0;
  while (waitpid(*child, &result, 0) < 0 && errno == EINTR) {
  }
  if (text.ok() && (!WIFEXITED(result) || WEXITSTATUS(result) != 0)) {
    return Status(Code::kPermission, WIFEXITED(result)
                                         ? fmt::format("exited with {}", WEXITSTATUS(result))
                                         : fmt::format("was ended by signal {}", WTERMSIG(result)));
  }
  return text;
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
