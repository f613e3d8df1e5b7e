#include <fmt/format.h>

#include <map>
#include <set>

#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

struct Right {
  std::string_view group, resource, subresource;
  std::vector<std::string_view> verbs;
};
const std::string_view kQuotas = "nos.nebuly.com";

// Everything that Reader lists.
const std::vector<Right>& RightsOfThisCommand() {
  static const std::vector<Right> kRights{
      {"", "nodes", "", {"list"}},
      {"", "pods", "", {"list"}},
      {"apps", "deployments", "", {"list"}},
      {"apps", "daemonsets", "", {"list"}},
      {"apps", "statefulsets", "", {"list"}},
      {"apiextensions.k8s.io", "customresourcedefinitions", "", {"list"}},
      {"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", {"list"}},
      {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", {"list"}},
      {"node.k8s.io", "runtimeclasses", "", {"list"}},
      {"authorization.k8s.io", "subjectaccessreviews", "", {"create"}},
      {kQuotas, "elasticquotas", "", {"list"}},
      {kQuotas, "compositeelasticquotas", "", {"list"}}};
  return kRights;
}

// Read in the namespaces of nos only.
const std::vector<Right>& RightsInNamespaces() {
  static const std::vector<Right> kRights{{"", "configmaps", "", {"get"}},
                                          {"discovery.k8s.io", "endpointslices", "", {"list"}},
                                          {"coordination.k8s.io", "leases", "", {"list"}}};
  return kRights;
}

// The rights without which the daemon does nothing; its ClusterRole in the chart may have more.
const std::map<std::string_view, std::vector<Right>>& RightsOfDaemons() {
  static const std::map<std::string_view, std::vector<Right>> kRights{
      {"agent",
       {{"", "nodes", "", {"get", "list", "watch", "patch"}},
        {"", "nodes", "status", {"patch"}},
        {"", "pods", "", {"list", "watch"}},
        {"", "events", "", {"create", "patch"}}}},
      {"partitioner",
       {{"", "nodes", "", {"list", "watch", "patch"}},
        {"", "pods", "", {"list", "watch"}},
        {"", "pods", "status", {"patch"}},
        {"", "events", "", {"create", "patch"}}}},
      {"scheduler",
       {{"", "nodes", "", {"list", "watch", "patch"}},
        {"", "pods", "", {"list", "watch", "delete"}},
        {"", "pods", "binding", {"create"}},
        {"", "pods", "status", {"patch"}},
        {"", "events", "", {"create", "patch"}},
        {"", "persistentvolumeclaims", "", {"list", "watch", "patch"}},
        {"", "persistentvolumes", "", {"list", "watch", "patch"}},
        {"policy", "poddisruptionbudgets", "", {"list", "watch"}}}},
      {"operator",
       {{"", "nodes", "", {"list", "watch"}},
        {"", "pods", "", {"list", "watch", "patch"}},
        {"", "events", "", {"create", "patch"}},
        {kQuotas, "elasticquotas", "", {"list", "watch"}},
        {kQuotas, "elasticquotas", "status", {"patch"}},
        {kQuotas, "compositeelasticquotas", "", {"list", "watch"}},
        {kQuotas, "compositeelasticquotas", "status", {"patch"}}}},
      {"autoscaler",
       {{"", "nodes", "", {"list", "watch", "patch"}},
        {"", "pods", "", {"list", "watch"}},
        {"", "pods", "status", {"patch"}},
        {"", "pods", "eviction", {"create"}},
        {kQuotas, "nodepools", "", {"list", "watch"}},
        {kQuotas, "nodepools", "status", {"patch"}}}}};
  return kRights;
}

void AddRights(const std::string& who, const std::string& ns, const std::vector<Right>& rights,
               std::vector<AccessFacts>& to) {
  for (const Right& right : rights) {
    for (const std::string_view verb : right.verbs) {
      AccessFacts facts;
      facts.who = who;
      facts.ns = ns;
      facts.group = right.group;
      facts.resource = right.resource;
      facts.subresource = right.subresource;
      facts.verb = verb;
      to.push_back(std::move(facts));
    }
  }
}

struct Answers {
  std::vector<std::string> missing;
  size_t allowed = 0;
  Status unknown{};
};
Answers Sort(const Snapshot& snapshot, bool own) {
  Answers answers;
  for (const AccessFacts& one : snapshot.access) {
    if (one.who.empty() != own) continue;
    if (!one.asked.ok()) {
      answers.unknown = one.asked;
    } else if (one.allowed) {
      ++answers.allowed;
    } else {
      answers.missing.push_back(own ? one.Text() : fmt::format("{}: {}", one.who, one.Text()));
    }
  }
  return answers;
}

}  // namespace

std::vector<AccessFacts> RightsToAskFor(const Snapshot& snapshot) {
  std::vector<AccessFacts> all;
  AddRights("", "", RightsOfThisCommand(), all);
  std::set<std::string> namespaces;
  for (const WorkloadFacts* workload : snapshot.AllOfNos()) namespaces.insert(workload->ns);
  for (const std::string& ns : namespaces) AddRights("", ns, RightsInNamespaces(), all);
  std::set<std::string> asked;
  for (const auto& [command, rights] : RightsOfDaemons()) {
    for (const WorkloadFacts* workload : snapshot.Running(command)) {
      const std::string account =
          workload->service_account.empty() ? "default" : workload->service_account;
      const std::string who = fmt::format("system:serviceaccount:{}:{}", workload->ns, account);
      if (asked.insert(fmt::format("{} {}", who, command)).second) AddRights(who, "", rights, all);
    }
  }
  return all;
}

void CheckAccess(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Rights");
  const Answers own = Sort(snapshot, true);
  if (!own.unknown.ok()) {
    findings.Unread("CommandAccess", "SelfSubjectAccessReviews", own.unknown);
  } else {
    findings.WarnIfAny("CommandAccess", own.missing, "this command lacks rights, and checks less",
                       "run it as a user who may read the cluster, such as cluster-admin",
                       "this command has the rights that it needs");
  }
  const Answers daemons = Sort(snapshot, false);
  if (!daemons.missing.empty()) {
    return findings.Fail("DaemonAccess", "ServiceAccounts of nos lack rights",
                         "install the chart's ClusterRoles and bindings again: helm upgrade",
                         daemons.missing);
  }
  if (!daemons.unknown.ok()) {
    return findings.Unread("DaemonAccess", "SubjectAccessReviews", daemons.unknown);
  }
  if (daemons.allowed == 0) {
    return findings.NotChecked("DaemonAccess", "no daemon of nos is installed");
  }
  findings.Ok("DaemonAccess",
              fmt::format("ServiceAccounts of nos have {}", Count(daemons.allowed, "right")));
}

}  // namespace nos::cmd
