// Runs a partitioner against a fake API server that the test fills: nodes look as their agents
// report them, pods as kube-scheduler leaves them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controllers/partitioner.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "reconcile/testing/event_texts.h"
#include "reconcile/testing/scene.h"
#include "scheduling/configuration.h"

namespace nos::controllers {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Layouts = std::map<int, std::string>;  // GPU -> "3g.20gb@4:used,..."

class PartitionerTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(reconcile::testing::EventsWithoutVerb(api_), ""); }
  PartitionerTest() { Restart(); }

  void Restart() {
    runner_.reset();
    partitioner_ = std::make_unique<Partitioner>(config_, *framework_, gpu::Catalogue::Builtin());
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, api_, reconcile::RunnerOptions());
  }
  void Run(Duration time = seconds(5)) {
    EXPECT_TRUE(reconcile::testing::RunFor(*runner_, clock_, time))
        << "the partitioner does not come to rest";
  }

  // A node with A100-40GB GPUs, as its agent reports it.
  void Node(const std::string& name, const Layouts& status,
            const std::string& product = "NVIDIA-A100-SXM4-40GB") {
    JsonObject annotations;
    for (const auto& [gpu, layout] : status) {
      annotations["nos.nebuly.com/status-layout-" + std::to_string(gpu)] = layout;
    }
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", product},
                  {"nvidia.com/gpu.count", std::to_string(status.size())}}},
                {"annotations", std::move(annotations)}}},
              {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}});
  }
  // A pod in the state in which kube-scheduler leaves an unschedulable pod.
  void Pod(const std::string& name, const std::string& profile, const std::string& count = "1") {
    api_.Put(
        {{"kind", "Pod"},
         {"metadata",
          {{"namespace", "ml"},
           {"name", name},
           {"uid", "uid-" + name},
           {"creationTimestamp", FormatTime(clock_.Now())}}},
         {"spec",
          {{"containers",
            JsonArray{{{"name", "main"},
                       {"resources", {{"limits", {{"nvidia.com/mig-" + profile, count}}}}}}}}}},
         {"status",
          {{"phase", "Pending"},
           {"conditions",
            JsonArray{
                {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}}}});
  }
  void Change(const std::string& plural, const std::string& key,
              const std::function<void(Json&)>& edit) {
    Json object = *api_.Find(plural, key);
    edit(object);
    api_.Put(std::move(object));
  }
  void Bind(const std::string& name, const std::string& node) {
    Change("pods", "ml/" + name, [&](Json& pod) { MakeObject(pod, "spec")["nodeName"] = node; });
  }
  std::string Annotation(const std::string& node, const std::string& key) {
    return reconcile::testing::NodeAnnotation(api_, node, key);
  }
  void Annotate(const std::string& node, const std::string& key, const std::string& value) {
    Change("nodes", node, [&](Json& object) {
      MakeObject(object, "metadata", "annotations")["nos.nebuly.com/" + key] = value;
    });
  }
  std::string Spec(const std::string& node, int gpu = 0) {
    return Annotation(node, "spec-layout-" + std::to_string(gpu));
  }
  std::string PlanOf(const std::string& node) { return Annotation(node, "spec-partitioning-plan"); }
  // Simulates an agent that carries out the plan completely.
  void Acknowledge(const std::string& node, const Layouts& status) {
    for (const auto& [gpu, layout] : status) {
      Annotate(node, "status-layout-" + std::to_string(gpu), layout);
    }
    Annotate(node, "status-partitioning-plan", PlanOf(node));
  }
  std::string Condition(const std::string& pod, std::string_view field) {
    for (const Json& condition :
         api_.Find("pods", "ml/" + pod)->at("status").at("conditions").as_array()) {
      if (FindString(condition, "type") == kPartitionedCondition) {
        return std::string(FindString(condition, field));
      }
    }
    return "";
  }
  std::string Events() { return reconcile::testing::EventsOf(api_); }
  int CountEvents(std::string_view reason) { return reconcile::testing::CountEvents(api_, reason); }
  int Patches(const std::string& node) {
    int count = 0;
    for (const auto& request : api_.writes) count += request.path == "/api/v1/nodes/" + node;
    return count;
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  std::shared_ptr<scheduling::Framework> framework_ =
      scheduling::DefaultConfiguration({}).profiles.front().framework;
  PartitionerConfig config_;
  std::unique_ptr<Partitioner> partitioner_;
  std::unique_ptr<reconcile::Runner> runner_;
};

}  // namespace nos::controllers
