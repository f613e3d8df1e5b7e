#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "controllers/scheduler.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;

// Node "n", and a pending pod "p" with the claim "data".
class SchedulerVolumesTest : public testing::Test {
 protected:
  SchedulerVolumesTest() {
    reconcile::RunnerOptions options;
    options.watch_context = true;
    runner_ = std::make_unique<reconcile::Runner>(scheduler_, api_, options);
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", "n"}}},
              {"status", {{"allocatable", {{"cpu", "4"}, {"pods", "9"}}}}}});
    api_.Put({{"kind", "StorageClass"},
              {"metadata", {{"name", "cloud"}}},
              {"provisioner", "d.io"},
              {"volumeBindingMode", "WaitForFirstConsumer"}});
    Pod("p", "data");
  }
  void Pod(const std::string& name, const std::string& claim) {
    api_.Put({{"kind", "Pod"},
              {"metadata", {{"namespace", "ml"}, {"name", name}}},
              {"spec",
               {{"schedulerName", "default-scheduler"},
                {"containers", JsonArray{{{"name", "main"}}}},
                {"volumes",
                 JsonArray{{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}}}}},
              {"status", {{"phase", "Pending"}}}});
  }
  void Claim(const std::string& name) {
    api_.Put({{"kind", "PersistentVolumeClaim"},
              {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", name}}},
              {"spec",
               {{"accessModes", JsonArray{"ReadWriteOnce"}},
                {"storageClassName", "cloud"},
                {"resources", {{"requests", {{"storage", "1Gi"}}}}}}},
              {"status", {{"phase", "Pending"}}}});
  }
  void Run(seconds patience = seconds(9)) {
    for (int i = 0; i < 500; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > clock_.Now() + patience) return;
      clock_.AdvanceTo(*due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
  std::string NodeOf(const std::string& name) {
    return std::string(FindString(*api_.Find("pods", "ml/" + name), "spec", "nodeName"));
  }
  std::string SelectedNode() {
    return std::string(FindString(*api_.Find("persistentvolumeclaims", "ml/data"), "metadata",
                                  "annotations", "volume.kubernetes.io/selected-node"));
  }
  std::string Why(const std::string& name) {
    const Json* conditions = nos::Find(*api_.Find("pods", "ml/" + name), "status", "conditions");
    return conditions == nullptr
               ? ""
               : std::string(FindString(conditions->get_array().at(0), "message"));
  }
  // Acts as provisioner and volume controller.
  void Provision() {
    api_.Put({{"kind", "PersistentVolume"},
              {"metadata", {{"name", "made"}}},
              {"spec",
               {{"capacity", {{"storage", "1Gi"}}},
                {"storageClassName", "cloud"},
                {"claimRef", {{"namespace", "ml"}, {"name", "data"}, {"uid", "data"}}}}},
              {"status", {{"phase", "Bound"}}}});
    Json claim = *api_.Find("persistentvolumeclaims", "ml/data");
    claim.at("spec").as_object()["volumeName"] = "made";
    claim.at("metadata").at("annotations").as_object()["pv.kubernetes.io/bind-completed"] = "yes";
    claim.as_object()["status"] = {{"phase", "Bound"}};
    api_.Put(claim);
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  scheduling::Framework framework_ = scheduling::Framework::Default();
  Scheduler scheduler_{
      SchedulerConfig(), {{"default-scheduler", &framework_}}, gpu::Catalogue::Builtin()};
  std::unique_ptr<reconcile::Runner> runner_;
};

TEST_F(SchedulerVolumesTest, BindsPodAfterItsClaim) {
  Run();
  EXPECT_NE(Why("p").find("persistentvolumeclaim \"data\" not found"), std::string::npos);
  Claim("data");
  Run();
  EXPECT_EQ(SelectedNode(), "n");
  EXPECT_EQ(NodeOf("p"), "") << "its volume is being made";
  Provision();
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

TEST_F(SchedulerVolumesTest, ReschedulesPodAfterFailedProvisioning) {
  Claim("data");
  Run();
  ASSERT_EQ(SelectedNode(), "n");
  Json claim = *api_.Find("persistentvolumeclaims", "ml/data");
  claim.at("metadata").as_object().erase("annotations");
  api_.Put(claim);
  Run(seconds(20));
  EXPECT_EQ(SelectedNode(), "n") << "tried again";
  Provision();
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

TEST_F(SchedulerVolumesTest, ReleasesPodWhenProvisioningTimesOut) {
  Claim("data");
  Run();
  clock_.Advance(seconds(601));
  Run();
  EXPECT_EQ(NodeOf("p"), "");
  Provision();
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
}

}  // namespace
}  // namespace nos::controllers
