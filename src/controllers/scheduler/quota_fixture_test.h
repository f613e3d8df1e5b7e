// A scheduler fixture with elastic quotas.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controllers/scheduler/fixture_test.h"
#include "reconcile/condition.h"
#include "reconcile/testing/slow_watches.h"

namespace nos::controllers {

class QuotaFixture : public SchedulerFixture {
 protected:
  using Amounts = std::map<std::string, std::string>;

  static JsonObject ListOf(const Amounts& amounts) {
    JsonObject list;
    for (const auto& [resource, amount] : amounts) list[resource] = amount;
    return list;
  }
  void Quota(const std::string& ns, const Amounts& min, const Amounts& max = {},
             const std::string& parent = "") {
    JsonObject spec{{"min", ListOf(min)}};
    if (!max.empty()) spec["max"] = ListOf(max);
    if (!parent.empty()) spec["parent"] = parent;
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "ElasticQuota"},
              {"metadata", {{"namespace", ns}, {"name", "quota"}, {"uid", ns}}},
              {"spec", spec}});
  }
  // Quotas of cpu: namespace -> min.
  void CpuQuotas(const Amounts& mins) {
    for (const auto& [ns, cpu] : mins) Quota(ns, {{"cpu", cpu}});
  }
  // Each pod is younger than those before.
  void Pod(const std::string& ns, const std::string& name, const std::string& cpu = "1",
           int priority = 0, const JsonObject& labels = {}) {
    PodOf(ns, name, "cpu", cpu, priority, labels);
  }
  void PodOf(const std::string& ns, const std::string& name, const std::string& resource,
             const std::string& amount, int priority = 0, const JsonObject& labels = {}) {
    PodWith(ns, name, {{resource, amount}}, priority, labels);
  }
  // `more`: further members of spec.
  void PodWith(const std::string& ns, const std::string& name, const Amounts& limits,
               int priority = 0, const JsonObject& labels = {}, const JsonObject& more = {}) {
    JsonObject spec{
        {"priority", priority},
        {"schedulerName", "default-scheduler"},
        {"containers", JsonArray{{{"name", "main"}, {"resources", {{"limits", ListOf(limits)}}}}}}};
    for (const auto& [key, value] : more) spec[key] = value;
    const std::string minute = std::to_string(10 + pods_++);
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", ns},
                {"name", name},
                {"uid", ns + name},
                {"labels", labels},
                {"creationTimestamp", "2026-01-01T00:" + minute + ":00Z"}}},
              {"spec", spec},
              {"status", {{"phase", "Pending"}}}});
  }
  void NodeWith(const std::string& name, const Amounts& allocatable,
                const JsonObject& labels = {}) {
    JsonObject has = ListOf(allocatable);
    has["pods"] = "110";
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}, {"labels", labels}}},
              {"status", {{"allocatable", has}}}});
  }
  // The node of pod "ns/name". Empty: pending; "gone": deleted; "ending": terminating.
  std::string At(const std::string& key) {
    const Json* pod = api_.Find("pods", key);
    if (pod == nullptr) return "gone";
    if (nos::Find(*pod, "metadata", "deletionTimestamp") != nullptr) return "ending";
    return std::string(FindString(*pod, "spec", "nodeName"));
  }
  std::string WhyOf(const std::string& key) {
    const Json* conditions = nos::Find(*api_.Find("pods", key), "status", "conditions");
    return conditions == nullptr
               ? ""
               : std::string(FindString(conditions->get_array().at(0), "message"));
  }
  int Count(const std::vector<std::string>& keys, const std::string& what) {
    return static_cast<int>(
        std::ranges::count_if(keys, [&](const std::string& key) { return At(key) == what; }));
  }
  // Evicted pods terminate, and stay until the test removes them.
  void LetPodsEndSlowly(Duration grace = seconds(30)) {
    api_.intercept = [this, grace](const kube::ApiRequest& request) {
      std::optional<Result<kube::ApiResponse>> answer;
      if (request.method != "DELETE") return answer;
      const size_t begin = request.path.find("namespaces/") + 11;
      const size_t end = request.path.find('/', begin);
      Json pod = *api_.Find("pods", request.path.substr(begin, end - begin) + "/" +
                                        request.path.substr(request.path.rfind('/') + 1));
      MakeObject(pod, "metadata")["deletionTimestamp"] = FormatTime(clock_.Now() + grace);
      api_.Put(pod);
      answer = Result<kube::ApiResponse>(kube::ApiResponse{200, JsonObject{}, {}, {}});
      return answer;
    };
  }

  // Marks the node as unreachable.
  void Lose(const std::string& name) {
    Json node = *api_.Find("nodes", name);
    MakeObject(node, "spec")["taints"] =
        JsonArray{{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}};
    api_.Put(node);
  }

  // A terminating pod that another scheduler evicted. `for_quota`: its condition names a quota.
  void EvictedByAnother(const std::string& key, bool for_quota = false) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata")["deletionTimestamp"] = FormatTime(clock_.Now() + seconds(30));
    MakeObject(pod, "status")["conditions"] =
        JsonArray{{{"type", "DisruptionTarget"},
                   {"status", "True"},
                   {"reason", "PreemptionByScheduler"},
                   {"message", for_quota ? reconcile::ReclaimMessage("s") : ""}}};
    api_.Put(pod);
  }

  int pods_ = 0;
};

// Entitlements of several quotas, with pods that are bound to nodes by a node selector.
class ClaimsFixture : public QuotaFixture {
 protected:
  void Group(const std::string& ns, const std::string& name, int least) {
    SchedulerFixture::Group(name, least, ns);
  }
  // Pods of 1 cpu that belong to the gang.
  void Members(const std::string& ns, const std::string& gang,
               const std::vector<std::string>& names) {
    const JsonObject labels{{"scheduling.x-k8s.io/pod-group", gang}};
    for (const std::string& name : names) Pod(ns, name, "1", 0, labels);
  }
  void Pods(const std::string& ns, const std::vector<std::string>& names) {
    for (const std::string& name : names) Pod(ns, name);
  }
  void On(const std::string& node, const std::string& ns, const std::string& name,
          const std::string& cpu, int priority = 0) {
    PodWith(ns, name, {{"cpu", cpu}}, priority, {}, {{"nodeSelector", {{"name", node}}}});
  }
  // Pods p1 to p4 on node na and r1 to r4 on node nb.
  void EightPods(const std::string& ns) {
    for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", ns, name, "1");
    for (const char* name : {"r1", "r2", "r3", "r4"}) On("nb", ns, name, "1");
  }
  void Remove(const std::string& ns, const std::vector<std::string>& names) {
    for (const std::string& name : names) api_.Remove("pods", ns + "/" + name);
  }
  void RemoveEnding(const std::string& ns, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (At(ns + "/" + name) == "ending") api_.Remove("pods", ns + "/" + name);
    }
  }
  void Node(const std::string& name, const std::string& cpu) {
    NodeWith(name, {{"cpu", cpu}}, {{"name", name}});
  }
  void CpuNodes(const Amounts& cpus) {
    for (const auto& [name, cpu] : cpus) Node(name, cpu);
  }
  // Pods p0, p1, ... of 1 cpu in a namespace. Returns their keys.
  std::vector<std::string> Borrowers(const std::string& ns, int count,
                                     const std::string& node = "") {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) {
      const std::string name = "p" + std::to_string(i);
      node.empty() ? Pod(ns, name) : On(node, ns, name, "1");
      keys.push_back(ns + "/" + name);
    }
    return keys;
  }
  std::string NomineeOf(const std::string& key) {
    return std::string(FindString(*api_.Find("pods", key), "status", "nominatedNodeName"));
  }
  // A pod of another scheduler, which has nominated the node for it.
  void Foreign(const std::string& ns, const std::string& name, const std::string& cpu,
               const std::string& node, int priority = 0) {
    PodWith(ns, name, {{"cpu", cpu}}, priority, {}, {{"schedulerName", "old-release"}});
    Nominate(ns + "/" + name, node);
  }
  void Nominate(const std::string& key, const std::string& node) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "status")["nominatedNodeName"] = node;
    api_.Put(pod);
  }
  // GPU 0 of node g is used by a/p of a quota without min; GPU 1 is being partitioned by the
  // partitioner. Quota b has a min of both GPUs.
  void PartitionBesideABorrower() {
    GpuNode("g", 2);
    Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
    Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
    PodOf("a", "p", "nvidia.com/mig-7g.40gb", "1");
    Run();
    Report("g", Spec("g") + ":free");
    Run();
    ASSERT_EQ(At("a/p"), "g");
    UpdateNode("g", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:used"},
                     {"nos.nebuly.com/status-holders-0", "7g.40gb@0=a/p"},
                     {"nos.nebuly.com/status-layout-1", ""},
                     {"nos.nebuly.com/spec-layout-1", "1g.5gb@0"},
                     {"nos.nebuly.com/spec-partitioning-plan", "77"}});
  }
  // A second scheduler for pods with schedulerName "second".
  void StartSecond() {
    second_ = std::make_unique<Scheduler>(config_,
                                          std::vector{SchedulerProfile{"second", framework_.get()}},
                                          gpu::Catalogue::Builtin());
    second_watches_ = std::make_unique<reconcile::testing::SlowWatches>(api_);
    second_runner_ = std::make_unique<reconcile::Runner>(
        *second_, *second_watches_, reconcile::RunnerOptions{.watch_context = true});
  }
  // Runs until neither scheduler has anything to do now.
  void RunBoth() {
    for (int i = 0; i < 1000; ++i) {
      const bool b = second_runner_->Step(clock_), a = runner_->Step(clock_);
      if (!a && !b) return;
    }
    ADD_FAILURE() << "do not come to rest";
  }
  void RunSteps(int n = 50) {
    for (int i = 0; i < n; ++i) (void)runner_->Step(clock_);
  }
  void RunFor(Duration time) {
    for (const Time end = clock_.Now() + time; clock_.Now() < end;) {
      Run();
      clock_.Advance(seconds(10));
    }
    Run();
  }

  std::unique_ptr<Scheduler> second_;
  std::unique_ptr<reconcile::testing::SlowWatches> second_watches_;
  std::unique_ptr<reconcile::Runner> second_runner_;
};

}  // namespace nos::controllers
