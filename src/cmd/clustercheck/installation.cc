#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

// Empty if the definition is established and serves the version, else the reason.
std::string DefinitionState(const Json& definition, std::string_view version) {
  bool served = false, established = false;
  if (const Json* versions = Find(definition, "spec", "versions");
      versions != nullptr && versions->is_array()) {
    for (const Json& one : versions->get_array()) {
      const Json* serves = Find(one, "served");
      served = served || (FindString(one, "name") == version && serves != nullptr &&
                          serves->is_bool() && serves->get_bool());
    }
  }
  if (const Json* conditions = Find(definition, "status", "conditions");
      conditions != nullptr && conditions->is_array()) {
    for (const Json& one : conditions->get_array()) {
      established = established || (FindString(one, "type") == "Established" &&
                                    FindString(one, "status") == "True");
    }
  }
  if (!served) return fmt::format("does not serve {}", version);
  return established ? "" : "is not established";
}

const Json* FindDefinition(const Snapshot& snapshot, std::string_view name) {
  for (const Json& one : snapshot.definitions.items) {
    if (FindString(one, "metadata", "name") == name) return &one;
  }
  return nullptr;
}

void CheckDefinition(const Snapshot& snapshot, std::string_view name, std::string_view command,
                     const std::string& code, Findings& findings) {
  if (!snapshot.definitions.status.ok()) {
    return findings.Unread(code, "CustomResourceDefinitions", snapshot.definitions.status);
  }
  const Json* definition = FindDefinition(snapshot, name);
  const bool needed = !snapshot.Running(command).empty();
  if (definition == nullptr && !needed) {
    return findings.NotChecked(code,
                               fmt::format("{} does not exist, and no {} runs", name, command));
  }
  if (definition == nullptr) {
    return findings.Fail(code, fmt::format("{} does not exist, and the {} needs it", name, command),
                         "install the CRDs of the chart: helm upgrade, or kubectl apply "
                         "--server-side -k deploy/kustomize/base");
  }
  const std::string state = DefinitionState(*definition, "v1alpha1");
  if (!state.empty()) {
    return findings.Fail(code, fmt::format("{} {}", name, state),
                         "install the CRDs of this version again: kubectl apply --server-side "
                         "--force-conflicts -k deploy/kustomize/base");
  }
  findings.Ok(code, fmt::format("{} serves v1alpha1", name));
}

struct Daemon {
  std::string_view command, code;
  bool optional;
};
constexpr std::array<Daemon, 6> kDaemons{{{"partitioner", "PartitionerReady", false},
                                          {"agent", "AgentReady", false},
                                          {"scheduler", "SchedulerReady", true},
                                          {"operator", "OperatorReady", true},
                                          {"autoscaler", "AutoscalerReady", true},
                                          {"telemetry", "TelemetryServerReady", true}}};

void CheckDaemon(const Snapshot& snapshot, const Daemon& daemon, Findings& findings) {
  const std::string code(daemon.code);
  for (const auto* kind : {&snapshot.deployments, &snapshot.daemon_sets, &snapshot.stateful_sets}) {
    if (!kind->status.ok()) {
      return findings.Unread(code, "Deployments, DaemonSets and StatefulSets", kind->status);
    }
  }
  const auto running = snapshot.Running(daemon.command);
  const std::string where =
      snapshot.nos_namespace.empty() ? "" : " in namespace " + snapshot.nos_namespace;
  if (running.empty() && daemon.optional) {
    return findings.NotChecked(code,
                               fmt::format("the {} is not installed{}", daemon.command, where));
  }
  const auto runs = [&](std::string_view command) { return !snapshot.Running(command).empty(); };
  const bool others = runs("scheduler") || runs("operator");
  if (running.empty() && others && !runs("partitioner") && !runs("agent")) {
    return findings.NotChecked(
        code,
        fmt::format("neither partitioner nor agent is installed{}: nos partitions no GPU", where));
  }
  if (running.empty()) {
    const std::string missing = fmt::format("the {} is not installed{}", daemon.command, where);
    constexpr const char* kInstall = "install nos: docs/install.md";
    // Before an installation nothing is wrong.
    const bool before = snapshot.nos_namespace.empty() && snapshot.AllOfNos().empty();
    return before ? findings.Warn(code, missing, kInstall) : findings.Fail(code, missing, kInstall);
  }
  for (const WorkloadFacts* one : running) {
    const std::string state = fmt::format("{} {} has {} of {} pods ready", one->kind, one->Key(),
                                          one->ready, one->desired);
    if (one->kind == "DaemonSet" && one->desired == 0) {
      findings.Warn(code, fmt::format("{} {} selects no node", one->kind, one->Key()),
                    "label a node: kubectl label node NODE nos.nebuly.com/gpu-partitioning=mig");
    } else if (one->desired == 0) {
      findings.Fail(code, fmt::format("{} {} is scaled to zero", one->kind, one->Key()),
                    fmt::format("kubectl -n {} scale {} {} --replicas=2", one->ns,
                                ToLower(one->kind), one->name));
    } else if (one->ready == 0 || (one->kind == "DaemonSet" && one->ready < one->desired)) {
      findings.Fail(code, state,
                    fmt::format("kubectl -n {} describe pods; kubectl -n {} logs {}/{}", one->ns,
                                one->ns, ToLower(one->kind), one->name));
    } else if (one->ready < one->desired) {
      findings.Warn(code, state, fmt::format("kubectl -n {} describe pods", one->ns));
    } else {
      findings.Ok(code, state);
    }
  }
}

// "registry/nos:0.1.0" -> "0.1.0", also with "@sha256:..." after it; "@sha256:..." if there is no
// tag.
std::string VersionOfImage(const std::string& image) {
  const std::string name = image.substr(0, image.find('@'));
  const size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string::npos ? 0 : slash);
  return colon == std::string::npos ? image.substr(name.size()) : name.substr(colon + 1);
}

void CheckVersions(const Snapshot& snapshot, Findings& findings) {
  const auto all = snapshot.AllOfNos();
  if (all.empty()) return findings.NotChecked("VersionsAlike", "no daemon of nos is installed");
  std::set<std::string> versions;
  std::vector<std::string> each;
  for (const WorkloadFacts* one : all) {
    for (const ContainerFacts& container : one->containers) {
      versions.insert(VersionOfImage(container.image));
      each.push_back(fmt::format("{} {}", one->name, container.image));
    }
  }
  if (versions.size() > 1) {
    return findings.Warn("VersionsAlike", "daemons of nos run different versions",
                         "upgrade all of them: helm upgrade (docs/upgrading.md)", each);
  }
  const std::string& version = *versions.begin();
  if (version.empty()) {
    return findings.Warn("VersionsAlike", "the image of nos has no tag, so its version is unknown",
                         "name a version in image.tag, or image.digest");
  }
  if (version.starts_with('@')) {
    return findings.Ok("VersionsAlike", "all daemons run one image, by its digest " +
                                            version.substr(1) + ", which does not name a version");
  }
  if (version != snapshot.own_version) {
    return findings.Warn(
        "VersionsAlike",
        fmt::format("the daemons run {}, and this command is {}", version, snapshot.own_version),
        "use the command of the daemons' version: its checks know their rules");
  }
  findings.Ok("VersionsAlike", fmt::format("all daemons run {}", version));
}

void CheckInstances(const Snapshot& snapshot, Findings& findings) {
  std::set<std::string> namespaces;
  for (const WorkloadFacts* one : snapshot.Running("partitioner")) namespaces.insert(one->ns);
  if (namespaces.size() > 1) {
    findings.Fail("OneInstallation",
                  "several namespaces have a partitioner, which act against each other",
                  "uninstall all but one", {namespaces.begin(), namespaces.end()});
  } else if (!namespaces.empty()) {
    findings.Ok("OneInstallation", "nos is installed in namespace " + *namespaces.begin());
  }
}

// Source: defaults of the daemons' leaderElection.resourceName.
struct Leader {
  std::string_view command, lease;
};
constexpr std::array<Leader, 4> kLeaders{{{"partitioner", "gpu-partitioner.nebuly.com"},
                                          {"scheduler", "nos-scheduler"},
                                          {"operator", "operator.nos.nebuly.com"},
                                          {"autoscaler", "autoscaler.nos.nebuly.com"}}};

std::string LeaderState(const Snapshot& snapshot, std::string_view ns, std::string_view lease) {
  for (const LeaseFacts& one : snapshot.leases.items) {
    if (one.ns != ns || one.name != lease) continue;
    if (one.holder.empty()) return "no replica holds the Lease";
    const auto grace = std::chrono::seconds(std::max<int64_t>(one.seconds, 1));
    // The clocks of two machines may differ by some seconds.
    if (!one.renewed || snapshot.now - *one.renewed > grace + std::chrono::seconds(30)) {
      return "the Lease has expired";
    }
    return "";
  }
  return "there is no Lease " + std::string(lease);
}

// A field of leaderElection.
std::string Configured(const Json* config, std::string_view field, std::string_view otherwise) {
  const std::string_view value =
      config == nullptr ? "" : FindString(*config, "leaderElection", field);
  return std::string(value.empty() ? otherwise : value);
}

void CheckLeaders(const Snapshot& snapshot, Findings& findings) {
  if (!snapshot.leases.status.ok()) {
    return findings.Unread("LeaderElected", "Leases", snapshot.leases.status);
  }
  std::vector<std::string> without;
  size_t leaders = 0;
  for (const Leader& leader : kLeaders) {
    for (const WorkloadFacts* workload : snapshot.Running(leader.command)) {
      const Json* config = snapshot.ConfigOf(*workload);
      const Json* elect =
          config == nullptr ? nullptr : Find(*config, "leaderElection", "leaderElect");
      const bool off = elect != nullptr && elect->is_bool() && !elect->get_bool();
      if (workload->desired == 0 || off) continue;
      const std::string lease = Configured(config, "resourceName", leader.lease);
      const std::string ns = Configured(config, "resourceNamespace", workload->ns);
      ++leaders;
      const std::string state = LeaderState(snapshot, ns, lease);
      if (!state.empty()) without.push_back(fmt::format("{} ({})", workload->Key(), state));
    }
  }
  if (leaders == 0) return findings.NotChecked("LeaderElected", "no daemon elects a leader");
  findings.FailIfAny("LeaderElected", without,
                     Count(without.size(), "daemon") + " without a leader",
                     "kubectl -n NAMESPACE get lease; the log of each replica has the reason",
                     fmt::format("{} with a leader", Count(leaders, "daemon")));
}

}  // namespace

void CheckInstallation(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Installation");
  CheckInstances(snapshot, findings);
  for (const Daemon& daemon : kDaemons) CheckDaemon(snapshot, daemon, findings);
  CheckVersions(snapshot, findings);
  CheckLeaders(snapshot, findings);
  CheckDefinition(snapshot, "elasticquotas.nos.nebuly.com", "operator", "ElasticQuotaDefinition",
                  findings);
  CheckDefinition(snapshot, "compositeelasticquotas.nos.nebuly.com", "operator",
                  "CompositeElasticQuotaDefinition", findings);
  CheckDefinition(snapshot, "nodepools.nos.nebuly.com", "autoscaler", "NodePoolDefinition",
                  findings);
}

}  // namespace nos::cmd
