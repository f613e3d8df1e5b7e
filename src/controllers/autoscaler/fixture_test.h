// Runs an autoscaler against a fake API server that the test fills. The test plays the
// infrastructure: it creates the nodes that the pools' "Fleet" objects request. Pods look as
// kube-scheduler leaves them.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controllers/autoscaler.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "reconcile/runner.h"
#include "reconcile/testing/event_texts.h"
#include "reconcile/testing/scene.h"
#include "scheduling/configuration.h"

namespace nos::controllers {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class AutoscalerTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(reconcile::testing::EventsWithoutVerb(api_), ""); }
  AutoscalerTest() {
    api_.discovery["/apis/infra.example/v1"] = {
        {"resources",
         JsonArray{{{"name", "fleets"}, {"kind", "Fleet"}, {"namespaced", true}},
                   {{"name", "fleets/scale"}, {"kind", "Scale"}, {"namespaced", true}}}}};
    Restart();
  }
  // Simulates a crash and a restart.
  void Restart() {
    runner_.reset();
    autoscaler_ = std::make_unique<Autoscaler>(config_, *framework_, gpu::Catalogue::Builtin(),
                                               PoolScaling(webhook_), &metrics_);
    runner_ = std::make_unique<reconcile::Runner>(*autoscaler_, api_, WatchingForAutoscaler());
  }
  void Run(Duration time) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the autoscaler does not come to rest";
  }

  // Nodes of 8 cpu that take one minute to start, so they are late after two minutes.
  Json PoolJson(const std::string& name, const std::string& price, int max, int min = 0) {
    return {{"apiVersion", "nos.nebuly.com/v1alpha1"},
            {"kind", "NodePool"},
            {"metadata", {{"name", name}, {"uid", "uid-" + name}}},
            {"spec",
             {{"cpu", "8"},
              {"memory", "32Gi"},
              {"price", price},
              {"min", min},
              {"max", max},
              {"startSeconds", 60},
              {"nodeSelector", {{"pool", name}}},
              {"deleteAnnotation", "infra.example/goes"},
              {"scaleTargetRef",
               {{"apiVersion", "infra.example/v1"},
                {"kind", "Fleet"},
                {"namespace", "infra"},
                {"name", name}}}}}};
  }
  void Pool(const std::string& name, const std::string& price, int max, int min = 0,
            int wanted = 0) {
    api_.Put(PoolJson(name, price, max, min));
    Fleet(name, wanted);
  }
  // A pool that is scaled by a webhook.
  void HookedPool(const std::string& name) {
    Json pool = PoolJson(name, "1", 5);
    MakeObject(pool, "spec").erase("scaleTargetRef");
    MakeObject(pool, "spec").erase("deleteAnnotation");
    MakeObject(pool, "spec")["webhook"] = {{"url", "http://hook.example/"}};
    api_.Put(pool);
  }
  // Pods g1, g2, ... of 8 cpu that run together or not at all.
  void Gang(int count) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", "ml"}, {"name", "g"}}},
              {"spec", {{"minMember", count}}}});
    for (int i = 1; i <= count; ++i) {
      const std::string name = "g" + std::to_string(i);
      Pod(name, "8");
      Change("pods", "ml/" + name, [](Json& pod) {
        MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = "g";
      });
    }
  }
  void Fleet(const std::string& name, int wanted) {
    api_.Put({{"kind", "Fleet"},
              {"metadata", {{"namespace", "infra"}, {"name", name}}},
              {"spec", {{"replicas", wanted}}}});
  }
  int64_t Wanted(const std::string& pool) {
    return nos::Find(*api_.Find("fleets", "infra/" + pool), "spec", "replicas")->get_int64();
  }
  void Node(const std::string& name, const std::string& pool, bool ready = true,
            const std::string& cpu = "8") {
    api_.Put(
        {{"kind", "Node"},
         {"metadata",
          {{"name", name},
           {"uid", "uid-" + name},
           {"creationTimestamp", FormatTime(clock_.Now())},
           {"labels", {{"pool", pool}, {"kubernetes.io/hostname", name}}}}},
         {"status",
          {{"allocatable", {{"cpu", cpu}, {"memory", "32Gi"}, {"pods", "110"}}},
           {"conditions", JsonArray{{{"type", "Ready"}, {"status", ready ? "True" : "False"}}}}}}});
  }
  // A pod in the state in which kube-scheduler leaves an unschedulable pod.
  void Pod(const std::string& name, const std::string& cpu, const std::string& pool = "") {
    JsonObject selector;
    if (!pool.empty()) selector["pool"] = pool;
    const std::string now = FormatTime(clock_.Now());
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "ml"},
                {"name", name},
                {"uid", "uid-" + name},
                {"creationTimestamp", now},
                {"ownerReferences", JsonArray{{{"apiVersion", "apps/v1"},
                                               {"kind", "ReplicaSet"},
                                               {"name", "r"},
                                               {"uid", "r"},
                                               {"controller", true}}}}}},
              {"spec",
               {{"nodeSelector", std::move(selector)},
                {"containers",
                 JsonArray{{{"name", "main"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
              {"status",
               {{"phase", "Pending"},
                {"conditions", JsonArray{{{"type", "PodScheduled"},
                                          {"status", "False"},
                                          {"reason", "Unschedulable"},
                                          {"lastTransitionTime", now}}}}}}});
  }
  void Change(const std::string& plural, const std::string& key,
              const std::function<void(Json&)>& edit) {
    Json object = *api_.Find(plural, key);
    edit(object);
    api_.Put(std::move(object));
  }
  void Bind(const std::string& name, const std::string& node) {
    Change("pods", "ml/" + name, [&](Json& pod) {
      MakeObject(pod, "spec")["nodeName"] = node;
      MakeObject(pod, "status")["phase"] = "Running";
    });
  }
  void Mark(const std::string& node, const Removal& removal) {
    Change("nodes", node, [&](Json& object) {
      MakeObject(object, "metadata", "annotations")[kRemoval] = WriteRemoval(removal);
      MakeObject(object, "spec")["unschedulable"] = true;
    });
  }
  // Names of the nodes that are marked for removal.
  std::set<std::string> Marked() {
    std::set<std::string> names;
    const std::vector<Json> nodes = api_.All("nodes");
    for (const Json& node : nodes) {
      if (FindString(node, "metadata", "annotations", kRemoval).empty()) continue;
      names.insert(std::string(FindString(node, "metadata", "name")));
    }
    return names;
  }
  int Placeholders() {
    int count = 0;
    const std::vector<Json> pods = api_.All("pods");
    for (const Json& pod : pods) {
      count += nos::Find(pod, "metadata", "labels", kPlaceholder) != nullptr ? 1 : 0;
    }
    return count;
  }
  const Json* StatusOf(const std::string& pool, const char* field) {
    return nos::Find(*api_.Find("nodepools", pool), "status", field);
  }
  // "True NodesComing: message" of the pod's condition.
  std::string ScalingCondition(const std::string& pod) {
    return Condition(*api_.Find("pods", "ml/" + pod), kScalingCondition);
  }
  std::string Ready(const std::string& pool) {
    return Condition(*api_.Find("nodepools", pool), kPoolReady);
  }
  // The result of Ready for a pool whose nodes did not arrive.
  std::string NotDelivered(const std::string& pool, const std::string& why) {
    return fmt::format(
        "False NotDelivered: Pausing requests for Nodes until {}: requested Nodes did not arrive; "
        "{}",
        FindString(*api_.Find("nodepools", pool), "status", "closedUntil"), why);
  }
  static std::string Condition(const Json& object, std::string_view type) {
    const Json* conditions = nos::Find(object, "status", "conditions");
    if (conditions == nullptr) return "";
    for (const Json& condition : conditions->get_array()) {
      if (FindString(condition, "type") != type) continue;
      return std::string(FindString(condition, "status")) + " " +
             std::string(FindString(condition, "reason")) + ": " +
             std::string(FindString(condition, "message"));
    }
    return "";
  }
  std::string Events() { return reconcile::testing::EventsOf(api_); }
  int CountEvents(std::string_view reason) { return reconcile::testing::CountEvents(api_, reason); }
  int Decisions(const std::string& action) {
    int count = 0;
    for (const ScalingDecision& decision : autoscaler_->decisions()) {
      count += decision.action == action ? 1 : 0;
    }
    return count;
  }
  static bool IsScale(const kube::ApiRequest& request) {
    return request.method == "PUT" && request.path.ends_with("/scale");
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  Metrics metrics_;
  std::shared_ptr<scheduling::Framework> framework_ =
      scheduling::DefaultConfiguration({}).profiles.front().framework;
  AutoscalerConfig config_;
  PoolScaling::CallWebhook webhook_;
  std::unique_ptr<Autoscaler> autoscaler_;
  std::unique_ptr<reconcile::Runner> runner_;
};

}  // namespace nos::controllers
