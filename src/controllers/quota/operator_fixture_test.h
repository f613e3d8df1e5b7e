// An operator with a fake API server, quotas and running pods.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "controllers/operator.h"
#include "reconcile/testing/scene.h"

namespace nos::controllers {

class OperatorTest : public ::testing::Test {
 protected:
  using Amounts = std::map<std::string, std::string>;

  static JsonObject ListOf(const Amounts& amounts) {
    JsonObject list;
    for (const auto& [resource, amount] : amounts) list[resource] = amount;
    return list;
  }
  void Quota(const std::string& ns, const Amounts& min, const Amounts& max = {},
             const std::string& name = "quota") {
    PutQuota("ElasticQuota", ns, name, {{"min", ListOf(min)}, {"max", ListOf(max)}});
  }
  void Composite(const std::string& name, const std::vector<std::string>& namespaces,
                 const Amounts& min) {
    JsonArray names;
    for (const std::string& ns : namespaces) names.emplace_back(ns);
    PutQuota("CompositeElasticQuota", "default", name,
             {{"namespaces", names}, {"min", ListOf(min)}});
  }
  void PutQuota(const std::string& kind, const std::string& ns, const std::string& name,
                JsonObject spec) {
    const std::string plural = kind == "ElasticQuota" ? "elasticquotas" : "compositeelasticquotas";
    const Json* known = api_.Find(plural, ns + "/" + name);
    Json object{{"apiVersion", "nos.nebuly.com/v1alpha1"},
                {"kind", kind},
                {"metadata", {{"namespace", ns}, {"name", name}, {"uid", kind + ns + name}}},
                {"spec", std::move(spec)}};
    if (known != nullptr && nos::Find(*known, "status") != nullptr) {
      object.get_object()["status"] = *nos::Find(*known, "status");
    }
    api_.Put(std::move(object));
  }
  void Node(const std::string& name, const std::string& gpu_memory = "") {
    JsonObject labels;
    if (!gpu_memory.empty()) labels["nvidia.com/gpu.memory"] = gpu_memory;
    api_.Put({{"kind", "Node"}, {"metadata", {{"name", name}, {"labels", labels}}}});
  }
  // Each pod is younger than those before.
  void Pod(const std::string& ns, const std::string& name, const Amounts& asks = {{"cpu", "1"}},
           const std::string& node = "n", const std::string& phase = "Running") {
    const std::string minute = std::to_string(10 + pods_++);
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", ns},
                {"name", name},
                {"uid", ns + name},
                {"creationTimestamp", "2026-01-01T00:" + minute + ":00Z"}}},
              {"spec",
               {{"nodeName", node},
                {"containers",
                 JsonArray{{{"name", "main"}, {"resources", {{"requests", ListOf(asks)}}}}}}}},
              {"status", {{"phase", phase}}}});
  }
  void Change(const std::string& key, const std::function<void(Json&)>& change) {
    Json pod = *api_.Find("pods", key);
    change(pod);
    api_.Put(std::move(pod));
  }
  void Run() {
    ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::seconds(10)));
  }
  void Start(OperatorConfig config = {}) {
    runner_.reset();
    operator_ = std::make_unique<Operator>(config, nullptr, &metrics_);
    operator_->Lead(true);
    reconcile::RunnerOptions options;
    options.watch_context = true;
    options.context_kinds = OperatorKinds();
    runner_ = std::make_unique<reconcile::Runner>(*operator_, api_, options);
    Run();
  }
  std::string Label(const std::string& key) {
    return std::string(
        FindString(*api_.Find("pods", key), "metadata", "labels", "nos.nebuly.com/capacity"));
  }
  // "cpu=2 memory=1": one of the lists in a status.
  std::string StatusList(const std::string& key, const char* list,
                         const std::string& plural = "elasticquotas") {
    std::string text;
    const Json* found = nos::Find(*api_.Find(plural, key), "status", list);
    if (found == nullptr) return text;
    for (const auto& [resource, amount] : found->get_object()) {
      text += (text.empty() ? "" : " ") + std::string(resource) + "=" +
              std::string(nos::View(amount.get_string()));
    }
    return text;
  }
  int64_t OverQuota(const std::string& key) {
    return nos::Find(*api_.Find("elasticquotas", key), "status", "podsOverQuota")->get_int64();
  }
  // "False PartlyInForce: why"
  std::string InForce(const std::string& key, const std::string& plural = "elasticquotas") {
    const Json& condition =
        nos::Find(*api_.Find(plural, key), "status", "conditions")->get_array().at(0);
    return std::string(FindString(condition, "status")) + " " +
           std::string(FindString(condition, "reason")) + ": " +
           std::string(FindString(condition, "message"));
  }

  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  kube::FakeApi api_;
  Metrics metrics_;
  std::unique_ptr<Operator> operator_;
  std::unique_ptr<reconcile::Runner> runner_;
  int pods_ = 0;
};

}  // namespace nos::controllers
