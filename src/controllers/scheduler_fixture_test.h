// A scheduler before a fake API server, which has GPUs cut. Agents are played by what they write.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controllers/plan_result.h"
#include "controllers/runner.h"
#include "controllers/scheduler.h"
#include "controllers/testing/slow_watches.h"
#include "kube/testing/fake_api.h"
#include "scheduling/framework.h"

namespace nos::controllers {

using std::chrono::seconds;

class SchedulerFixture : public ::testing::Test {
 protected:
  SchedulerFixture() { Restart(); }

  void Restart() {
    runner_.reset();
    scheduler_ = std::make_unique<Scheduler>(
        config_, std::vector<SchedulerProfile>{{"default-scheduler", &framework_}},
        gpu::Catalogue::Builtin());
    RunnerOptions options;
    options.watch_around = true;
    runner_ = std::make_unique<Runner>(*scheduler_, watches_, options);
  }
  // Until nothing more happens soon.
  void Run() {
    for (int i = 0; i < 1000; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > clock_.Now() + seconds(9)) return;
      clock_.AdvanceTo(*due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
  // A node of A100-40GBs that its agent has reported as empty.
  void GpuNode(const std::string& name, int gpus) {
    JsonObject annotations;
    for (int i = 0; i < gpus; ++i) {
      annotations["nos.nebuly.com/status-layout-" + std::to_string(i)] = "";
    }
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", std::to_string(gpus)}}},
                {"annotations", annotations}}},
              {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}});
  }
  // One that waits in namespace "ml".
  void PutPod(const std::string& name, const std::string& resource, const std::string& amount,
              int priority, const JsonObject& labels = {}) {
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "ml"},
                {"name", name},
                {"uid", name + "-uid"},
                {"labels", labels},
                {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
              {"spec",
               {{"priority", priority},
                {"schedulerName", "default-scheduler"},
                {"containers", JsonArray{{{"name", "main"},
                                          {"resources", {{"limits", {{resource, amount}}}}}}}}}},
              {"status", {{"phase", "Pending"}}}});
  }
  std::string NodeOf(const std::string& pod) {
    return std::string(FindString(*api_.Find("pods", "ml/" + pod), "spec", "nodeName"));
  }
  std::string Annotation(const std::string& node, const std::string& key) {
    return std::string(FindString(*api_.Find("nodes", node), "metadata", "annotations", key));
  }
  // What GPU `gpu` is asked to be cut into.
  std::string Spec(const std::string& node, int gpu = 0) {
    return Annotation(node, "nos.nebuly.com/spec-layout-" + std::to_string(gpu));
  }
  std::string Plan(const std::string& node) {
    return Annotation(node, std::string(cluster::kSpecPlan));
  }
  // Changes a node as its agent and its kubelet do.
  void Tell(const std::string& node, const JsonObject& annotations,
            const JsonObject& allocatable = {}) {
    Json changed = *api_.Find("nodes", node);
    for (const auto& [key, value] : annotations) {
      MakeObject(changed, "metadata", "annotations")[key] = value;
    }
    for (const auto& [key, value] : allocatable) {
      MakeObject(changed, "status", "allocatable")[key] = value;
    }
    api_.Put(changed);
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  testing::SlowWatches watches_{api_};
  SchedulerConfig config_;
  scheduling::Framework framework_ = scheduling::Framework::Default(scheduling::GpusCut::kHere);
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace nos::controllers
