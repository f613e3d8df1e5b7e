// Implements PrintConfiguration.
#include <fmt/format.h>

#include "scheduling/configuration.h"

namespace nos::scheduling {
namespace {

std::string Quoted(const std::string& text) {
  return WriteJson(Json(text));  // JSON strings are valid YAML
}

std::string TextOf(Duration duration) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(duration);
  if (whole == duration) return fmt::format("{}s", whole.count());
  return fmt::format("{}ns", std::chrono::nanoseconds(duration).count());
}

void PrintPoint(Point point, const std::vector<PluginChoice>& choices, std::string& out) {
  // "*" does not disable nos's own plugins, so these are listed.
  out += fmt::format("    {}:\n      disabled: [{{name: \"*\"}}", NameOf(point));
  for (const std::string_view own : OwnPlugins()) out += fmt::format(", {{name: {}}}", own);
  out += "]\n";
  if (choices.empty()) return;
  out += "      enabled:\n";
  for (const PluginChoice& choice : choices) {
    out += fmt::format("      - name: {}\n", choice.name);
    if (point == Point::kScore) out += fmt::format("        weight: {}\n", choice.weight);
  }
}

void PrintProfile(const Profile& profile, std::string& out) {
  out += fmt::format(
      "- schedulerName: {}\n  # The plugins that run at each extension point, in this order.\n  "
      "plugins:\n",
      Quoted(profile.scheduler_name));
  for (size_t i = 0; i < kPoints; ++i) {
    const auto point = static_cast<Point>(i);
    if (point != Point::kPreScore) PrintPoint(point, profile.enabled.At(point), out);
  }
  if (profile.arguments.empty()) return;
  out += "  # Arguments that are not given have kube-scheduler's defaults.\n  pluginConfig:\n";
  for (const auto& [plugin, arguments] : profile.arguments) {
    out += fmt::format("  - name: {}\n    args: {}\n", plugin, WriteJson(arguments));
  }
}

void PrintLeaderElection(const Configuration::LeaderElection& election, std::string& out) {
  out += fmt::format(
      "# One of several replicas schedules: the one that holds the Lease.\n"
      "leaderElection:\n"
      "  leaderElect: {}\n"
      "  resourceName: {}\n"
      "  # Namespace of the Lease. Empty: the namespace of this pod, else default.\n"
      "  resourceNamespace: {}\n"
      "  leaseDuration: {}\n"
      "  renewDeadline: {}\n"
      "  retryPeriod: {}\n",
      election.elect, Quoted(election.name), Quoted(election.ns), TextOf(election.lease),
      TextOf(election.renew), TextOf(election.retry));
}

}  // namespace

std::string PrintConfiguration(const Configuration& configuration) {
  std::string out =
      "apiVersion: kubescheduler.config.k8s.io/v1\n"
      "kind: KubeSchedulerConfiguration\n";
  out += fmt::format(
      "# Time before a pod is tried again: the first, doubled with each attempt up to the second.\n"
      "podInitialBackoffSeconds: {}\n"
      "podMaxBackoffSeconds: {}\n",
      ToSeconds(configuration.queue.initial_pause), ToSeconds(configuration.queue.max_pause));
  const Configuration::Client& client = configuration.client;
  out += fmt::format(
      "# Requests to the API server per second, and burst after a pause; negative: no limit.\n"
      "clientConnection:\n"
      "  kubeconfig: {}\n"
      "  qps: {}\n"
      "  burst: {}\n",
      Quoted(client.kubeconfig), client.requests_per_second, client.burst);
  PrintLeaderElection(configuration.leader_election, out);
  out += "profiles:\n";
  for (const Profile& profile : configuration.profiles) PrintProfile(profile, out);
  return out;
}

}  // namespace nos::scheduling
