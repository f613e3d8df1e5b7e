// A scheduler that partitions GPUs, with a fake API server. Tests play the agents: they write what
// agents would report.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codec/yaml.h"
#include "controllers/scheduler.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "reconcile/plan_result.h"
#include "reconcile/runner.h"
#include "reconcile/testing/scene.h"
#include "reconcile/testing/slow_watches.h"
#include "scheduling/configuration.h"

namespace nos::controllers {

using std::chrono::seconds;

class SchedulerFixture : public ::testing::Test {
 protected:
  SchedulerFixture() { Restart(); }

  static std::shared_ptr<scheduling::Framework> FrameworkOf(scheduling::PartitionedBy by) {
    return scheduling::DefaultConfiguration({.partitioned_by = by}).profiles.front().framework;
  }
  void Restart() { RestartWith(nullptr); }
  // `with_partitioning`: see SchedulerProfile.
  void RestartWith(const scheduling::Framework* with_partitioning) {
    SchedulerProfile profile{"default-scheduler", framework_.get()};
    profile.with_partitioning = with_partitioning;
    UseProfiles({profile});
  }
  // Restarts with profiles whose frameworks live longer than the scheduler.
  void UseProfiles(const std::vector<SchedulerProfile>& profiles, SchedulerThreads threads = {}) {
    runner_.reset();
    scheduler_ = std::make_unique<Scheduler>(config_, profiles, gpu::Catalogue::Builtin(), threads);
    runner_ = std::make_unique<reconcile::Runner>(*scheduler_, watches_,
                                                  reconcile::RunnerOptions{.watch_context = true});
  }
  // Restarts a scheduler that waits for the partitioner.
  void LeavePartitioningToPartitioner() {
    End();
    framework_ = FrameworkOf(scheduling::PartitionedBy::kPartitioner);
    RestartWith(partitioning_.get());
  }
  // Restarts with these arguments of the plugin CapacityScheduling.
  void UseQuotaArguments(const std::string& arguments) {
    const auto file = scheduling::ReadConfiguration(
        ParseYaml("{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, "
                  "profiles: [{schedulerName: default-scheduler, pluginConfig: [{name: "
                  "CapacityScheduling, args: " +
                  arguments + "}]}]}")
            ->front(),
        {.default_name = "default-scheduler",
         .partitioned_by = scheduling::PartitionedBy::kScheduler});
    ASSERT_TRUE(file.ok()) << file.status().message();
    End();
    framework_ = file->profiles.front().framework;
    Restart();
  }
  void End() {
    runner_.reset();
    scheduler_.reset();
  }
  // Runs until nothing is due within 9 seconds.
  void Run() {
    for (int i = 0; i < 1000; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > clock_.Now() + seconds(9)) return;
      clock_.AdvanceTo(*due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
  // Runs every five seconds until `time` has passed.
  void RunInSteps(Duration time) {
    const Time end = clock_.Now() + time;
    while (clock_.Now() < end) {
      Run();
      clock_.AdvanceTo(std::min(end, clock_.Now() + seconds(5)));
    }
    Run();
  }
  void CpuNode(const std::string& name, const std::string& cpu) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}}},
              {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}}}}});
  }
  // A node with A100-40GB GPUs that its agent has reported as empty.
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
  // A pending pod in namespace "ml".
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
  void Group(const std::string& name, int least, const std::string& ns = "ml") {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", ns}, {"name", name}}},
              {"spec", {{"minMember", least}}}});
  }
  void SetLimit(const std::string& pod, const std::string& resource, const std::string& amount) {
    ChangePod(pod, [&](Json& json) {
      Json& container = json.at("spec").at("containers").at(0);
      MakeObject(container, "resources", "limits")[resource] = amount;
    });
  }
  // Changes a pod as another client would.
  template <typename Change>
  void ChangePod(const std::string& name, Change change) {
    Json pod = *api_.Find("pods", "ml/" + name);
    change(pod);
    api_.Put(pod);
  }
  // Gives the pod a claim of its own name, whose volume is created on the pod's node
  // (WaitForFirstConsumer).
  void GiveClaim(const std::string& pod) {
    api_.Put({{"kind", "StorageClass"},
              {"metadata", {{"name", "local"}}},
              {"provisioner", "d.io"},
              {"volumeBindingMode", "WaitForFirstConsumer"}});
    api_.Put({{"kind", "PersistentVolumeClaim"},
              {"metadata", {{"namespace", "ml"}, {"name", pod}, {"uid", pod}}},
              {"spec",
               {{"accessModes", JsonArray{"ReadWriteOnce"}},
                {"storageClassName", "local"},
                {"resources", {{"requests", {{"storage", "1Gi"}}}}}}},
              {"status", {{"phase", "Pending"}}}});
    ChangePod(pod, [&](Json& json) {
      MakeObject(json, "spec")["volumes"] =
          JsonArray{{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", pod}}}}};
    });
  }
  // The node for the claim's volume. Empty: not set yet.
  std::string ClaimsNode(const std::string& pod) {
    return std::string(FindString(*api_.Find("persistentvolumeclaims", "ml/" + pod), "metadata",
                                  "annotations", "volume.kubernetes.io/selected-node"));
  }
  void Cordon(const std::string& node) {
    Json cordoned = *api_.Find("nodes", node);
    MakeObject(cordoned, "spec")["unschedulable"] = true;
    api_.Put(cordoned);
  }
  void SetPhase(const std::string& name, const std::string& phase) {
    ChangePod(name, [&](Json& pod) { MakeObject(pod, "status")["phase"] = phase; });
  }
  void BindElsewhere(const std::string& name, const std::string& node) {
    ChangePod(name, [&](Json& pod) { MakeObject(pod, "spec")["nodeName"] = node; });
  }
  // Makes deleted pods terminate until the test removes them.
  void LetPodsEndSlowly() {
    api_.intercept = [this](const kube::ApiRequest& request) {
      std::optional<Result<kube::ApiResponse>> answer;
      if (request.method != "DELETE") return answer;
      ChangePod(request.path.substr(request.path.rfind('/') + 1), [](Json& pod) {
        MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
      });
      answer = Result<kube::ApiResponse>(kube::ApiResponse{200, JsonObject{}, {}, {}});
      return answer;
    };
  }
  bool IsEnding(const std::string& pod) {
    return nos::Find(*api_.Find("pods", "ml/" + pod), "metadata", "deletionTimestamp") != nullptr;
  }
  // Empty: the pod is not bound; "gone": it is deleted.
  std::string NodeOf(const std::string& pod) {
    const Json* found = api_.Find("pods", "ml/" + pod);
    return found == nullptr ? "gone" : std::string(FindString(*found, "spec", "nodeName"));
  }
  std::string Nominee(const std::string& pod) {
    return std::string(FindString(*api_.Find("pods", "ml/" + pod), "status", "nominatedNodeName"));
  }
  // The message of the pod's first condition.
  std::string Why(const std::string& name) {
    const Json* conditions = nos::Find(*api_.Find("pods", "ml/" + name), "status", "conditions");
    return conditions == nullptr
               ? ""
               : std::string(FindString(conditions->get_array().at(0), "message"));
  }
  std::string Annotation(const std::string& node, const std::string& key) {
    return std::string(FindString(*api_.Find("nodes", node), "metadata", "annotations", key));
  }
  // The layout requested for GPU `gpu`.
  std::string Spec(const std::string& node, int gpu = 0) {
    return Annotation(node, "nos.nebuly.com/spec-layout-" + std::to_string(gpu));
  }
  std::string Plan(const std::string& node) {
    return Annotation(node, std::string(cluster::kSpecPlan));
  }
  // Changes a node as its agent and kubelet would.
  void UpdateNode(const std::string& node, const JsonObject& annotations,
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

  // The agent reports this layout for GPU 0, and who holds its instances. It has carried out the
  // plan, and the kubelet offers the slices.
  void Report(const std::string& node, const std::string& layout, const std::string& holders = "") {
    std::map<std::string, int> counts;
    for (const std::string_view instance : Split(layout, ',')) {
      ++counts["nvidia.com/mig-" + std::string(instance.substr(0, instance.find('@')))];
    }
    UpdateNode(node, {{"nos.nebuly.com/status-layout-0", layout},
                      {"nos.nebuly.com/status-holders-0", holders},
                      {"nos.nebuly.com/status-partitioning-plan", Plan(node)}});
    reconcile::testing::PutAllocatable(api_, node, counts);
  }
  int CountEvents(std::string_view reason) { return reconcile::testing::CountEvents(api_, reason); }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  reconcile::testing::SlowWatches watches_{api_};
  SchedulerConfig config_;
  std::shared_ptr<scheduling::Framework> framework_ =
      FrameworkOf(scheduling::PartitionedBy::kScheduler);
  const std::shared_ptr<scheduling::Framework> partitioning_ =
      FrameworkOf(scheduling::PartitionedBy::kScheduler);
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<reconcile::Runner> runner_;
};

}  // namespace nos::controllers
