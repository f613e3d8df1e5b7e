#include "controllers/autoscaler/scaling_signal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

using cluster::NodePool;
using cluster::PoolSignal;

constexpr const char* kRequest = "nos/nos-demand-a100";

class ScalingSignalTest : public ::testing::Test {
 protected:
  ScalingSignalTest()
      : client_(api_),
        pods_(kube::kPods, cluster::ReadPod),
        nodes_(kube::kNodes, cluster::ReadNode),
        context_({}) {}

  static NodePool Pool(PoolSignal signal = PoolSignal::kWaitingPods,
                       const std::string& name = "a100") {
    NodePool pool;
    pool.meta.name = name;
    pool.signal = signal;
    pool.gpu = {.model = "A100-80GB", .product = {}, .count = 8, .memory = {}};
    pool.resources = {{"cpu", *Quantity::Parse("90")},
                      {"memory", *Quantity::Parse("900Gi")},
                      {"pods", *Quantity::Parse("110")},
                      {"rdma/hca", *Quantity::Parse("4")}};
    pool.node_selector = {{"node.example/pool", name}};
    pool.taints = {{"nvidia.com/gpu", "present", "NoSchedule"}};
    pool.max = 20;
    return pool;
  }
  // The pool as the API server stores it.
  void PutPool(const std::string& name, const std::string& signal) {
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "NodePool"},
              {"metadata", {{"name", name}}},
              {"spec",
               {{"cpu", "90"},
                {"memory", "900Gi"},
                {"max", 20},
                {"signal", signal},
                {"nodeSelector", {{"node.example/pool", name}}}}}});
  }
  reconcile::Listers Look() {
    clock_ += std::chrono::seconds(1);
    pods_.Pump(client_, clock_);
    nodes_.Pump(client_, clock_);
    context_.Pump(client_, clock_);
    return {pods_, nodes_, &context_};
  }
  Status Show(const NodePool& pool, int count) {
    return signal_.Show(pool, count, Look(), client_, clock_);
  }
  std::string Pods() const {
    std::string names;
    const auto all = api_.All("pods");
    for (const Json& pod : all) {
      names += (names.empty() ? "" : " ") + std::string(FindString(pod, "metadata", "name"));
    }
    return names;
  }
  // Changes a pod as another client does.
  void Edit(const std::string& name, const std::function<void(Json&)>& change) {
    Json pod = *api_.Find("pods", "nos/" + name);
    change(pod);
    pod.get_object()["kind"] = "Pod";
    api_.Put(std::move(pod));
  }
  void MadeAt(const std::string& name, const std::string& minute) {
    Edit(name, [&](Json& pod) {
      MakeObject(pod, "metadata")["creationTimestamp"] = "2026-01-01T00:" + minute + ":00Z";
    });
  }
  void Condition(const std::string& type) {
    Json request = *api_.Find("provisioningrequests", kRequest);
    MakeObject(request, "metadata")["creationTimestamp"] = FormatTime(clock_);
    MakeObject(request, "status")["conditions"] =
        JsonArray{JsonObject{{"type", type}, {"status", "True"}}};
    request.get_object()["kind"] = "ProvisioningRequest";
    api_.Put(std::move(request));
  }
  int64_t Asked() const {
    const Json* request = api_.Find("provisioningrequests", kRequest);
    return request == nullptr
               ? 0
               : Find(*request, "spec", "podSets")->get_array()[0].at("count").as_int64();
  }
  size_t Writes() {
    const size_t writes = api_.writes.size();
    api_.writes.clear();
    return writes;
  }

  kube::FakeApi api_;
  kube::Client client_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  reconcile::ContextCaches context_;
  Time clock_ = *ParseTime("2026-01-01T12:00:00Z");
  SignalConfig config_{.ns = "nos",
                       .image = "nos:1",
                       .command = {"/nos", "hold"},
                       .priority_class = "nos-demand",
                       .pull_secrets = {"mirror"}};
  ScalingSignal signal_{config_};
};

TEST_F(ScalingSignalTest, CreatesOnePodPerMissingNodeThatFitsOnlyThere) {
  ASSERT_TRUE(Show(Pool(), 2).ok());
  EXPECT_EQ(Pods(), "nos-demand-a100-0 nos-demand-a100-1");
  const Json& pod = *api_.Find("pods", "nos/nos-demand-a100-0");
  EXPECT_EQ(FindString(pod, "metadata", "labels", kDemandOf), "a100");
  EXPECT_EQ(FindString(pod, "spec", "nodeSelector", "node.example/pool"), "a100");
  EXPECT_EQ(FindString(pod, "spec", "priorityClassName"), "nos-demand");
  EXPECT_EQ(WriteJson(pod.at("spec").at("imagePullSecrets")), R"([{"name":"mirror"}])");
  const Json& container = pod.at("spec").at("containers").at(0);
  EXPECT_EQ(container.at("resources").at("requests"),
            Json({{"cpu", "90"}, {"memory", "900Gi"}, {"nvidia.com/gpu", "8"}}))
      << "only resources that any autoscaler knows";
  EXPECT_EQ(container.at("resources").at("limits"), container.at("resources").at("requests"));
  EXPECT_EQ(container.at("command"), Json(JsonArray{"/nos", "hold"}));
  EXPECT_EQ(WriteJson(pod.at("spec").at("tolerations")),
            R"([{"key":"nvidia.com/gpu","operator":"Equal","value":"present",)"
            R"("effect":"NoSchedule"}])");
  const auto read = cluster::DecodePod(pod);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(IsDemand(*read));
  EXPECT_FALSE(IsDemand(cluster::Pod()));
}

TEST_F(ScalingSignalTest, PodsOfPartitionedPoolRequestNoGpus) {
  NodePool pool = Pool();
  pool.gpu.partitioning = cluster::SharingMode::kMig;
  ASSERT_TRUE(Show(pool, 1).ok());
  EXPECT_EQ(api_.Find("pods", "nos/nos-demand-a100-0")
                ->at("spec")
                .at("containers")
                .at(0)
                .at("resources")
                .at("requests"),
            Json({{"cpu", "90"}, {"memory", "900Gi"}}));
}

TEST_F(ScalingSignalTest, WritesNothingWithoutChange) {
  ASSERT_TRUE(Show(Pool(), 2).ok());
  EXPECT_EQ(Writes(), 2);
  ASSERT_TRUE(Show(Pool(), 2).ok());
  EXPECT_EQ(Writes(), 0);
}

TEST_F(ScalingSignalTest, DoesNotCreatePodsTwiceWhileCacheLags) {
  const reconcile::Listers view = Look();
  ASSERT_TRUE(signal_.Show(Pool(), 2, view, client_, clock_).ok());
  ASSERT_TRUE(signal_.Show(Pool(), 2, view, client_, clock_).ok());
  EXPECT_EQ(api_.All("pods").size(), 2);
}

TEST_F(ScalingSignalTest, DeletesNewestPodsFirst) {
  ASSERT_TRUE(Show(Pool(), 3).ok());
  MadeAt("nos-demand-a100-0", "03");
  MadeAt("nos-demand-a100-1", "01");
  MadeAt("nos-demand-a100-2", "02");
  ASSERT_TRUE(Show(Pool(), 2).ok());
  EXPECT_EQ(Pods(), "nos-demand-a100-1 nos-demand-a100-2");
  ASSERT_TRUE(Show(Pool(), 0).ok());
  EXPECT_EQ(Pods(), "");
}

TEST_F(ScalingSignalTest, DeletesPodThatGotANode) {
  ASSERT_TRUE(Show(Pool(), 2).ok());
  Edit("nos-demand-a100-0", [](Json& pod) { MakeObject(pod, "spec")["nodeName"] = "new"; });
  ASSERT_TRUE(Show(Pool(), 1).ok());
  EXPECT_EQ(Pods(), "nos-demand-a100-1");
}

TEST_F(ScalingSignalTest, ReplacesPodsOfChangedPool) {
  ASSERT_TRUE(Show(Pool(), 1).ok());
  NodePool larger = Pool();
  larger.resources["cpu"] = *Quantity::Parse("180");
  ASSERT_TRUE(Show(larger, 1).ok());
  ASSERT_TRUE(Show(larger, 1).ok());
  ASSERT_EQ(api_.All("pods").size(), 1);
  EXPECT_EQ(FindString(api_.All("pods")[0].at("spec").at("containers").at(0), "resources",
                       "requests", "cpu"),
            "180");
}

TEST_F(ScalingSignalTest, KeepsPodsOfOtherPoolsAndNamespaces) {
  ASSERT_TRUE(Show(Pool(PoolSignal::kWaitingPods, "h100"), 1).ok());
  api_.Put(
      {{"kind", "Pod"},
       {"metadata", {{"namespace", "team"}, {"name", "mine"}, {"labels", {{kDemandOf, "a100"}}}}},
       {"spec", {{"containers", JsonArray{JsonObject{{"name", "c"}}}}}}});
  ASSERT_TRUE(Show(Pool(), 0).ok());
  EXPECT_EQ(Pods(), "nos-demand-h100-0 mine");
}

TEST_F(ScalingSignalTest, CreatesAtMost500Pods) {
  ASSERT_TRUE(Show(Pool(), 10'000).ok());
  EXPECT_EQ(api_.All("pods").size(), 500);
}

TEST_F(ScalingSignalTest, RejectsPoolNameTooLongForLabel) {
  const Status shown = Show(Pool(PoolSignal::kWaitingPods, std::string(51, 'x')), 1);
  EXPECT_EQ(shown.code(), Code::kInvalid);
  EXPECT_NE(shown.message().find("50 characters"), std::string::npos) << shown.message();
  EXPECT_EQ(Writes(), 0);
}

TEST_F(ScalingSignalTest, ReturnsErrorForRefusedPod) {
  Refuse(api_, "POST", "", kube::HttpStatus(403, "no more pods"));
  EXPECT_EQ(Show(Pool(), 1).code(), Code::kPermission);
}

TEST_F(ScalingSignalTest, CreatesOneProvisioningRequestForAllMissingNodes) {
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 3).ok());
  EXPECT_EQ(Pods(), "");
  EXPECT_EQ(Asked(), 3);
  const Json& request = *api_.Find("provisioningrequests", kRequest);
  EXPECT_EQ(FindString(request, "spec", "provisioningClassName"),
            "best-effort-atomic-scale-up.autoscaling.x-k8s.io");
  EXPECT_EQ(FindString(request.at("spec").at("podSets").at(0), "podTemplateRef", "name"),
            "nos-demand-a100");
  const Json* pods = api_.Find("podtemplates", kRequest);
  ASSERT_NE(pods, nullptr);
  EXPECT_EQ(FindString(*pods, "template", "spec", "nodeSelector", "node.example/pool"), "a100");
  Writes();
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 3).ok());
  EXPECT_EQ(Writes(), 0);
}

TEST_F(ScalingSignalTest, ReplacesRequestOnNewCountUnlessProvisioned) {
  const NodePool pool = Pool(PoolSignal::kProvisioningRequest);
  ASSERT_TRUE(Show(pool, 3).ok());
  ASSERT_TRUE(Show(pool, 5).ok());
  EXPECT_EQ(Asked(), 5);
  ASSERT_TRUE(Show(pool, 4).ok());
  EXPECT_EQ(Asked(), 4);
  Condition("Provisioned");
  ASSERT_TRUE(Show(pool, 1).ok());
  EXPECT_EQ(Asked(), 4) << "three nodes exist, one is starting";
  ASSERT_TRUE(Show(pool, 0).ok());
  EXPECT_EQ(Asked(), 0);
  EXPECT_EQ(api_.Find("podtemplates", kRequest), nullptr);
}

TEST_F(ScalingSignalTest, RecreatesFailedRequestAfterPause) {
  const NodePool pool = Pool(PoolSignal::kProvisioningRequest);
  ASSERT_TRUE(Show(pool, 3).ok());
  Condition("Failed");
  Writes();
  clock_ += std::chrono::minutes(4);
  ASSERT_TRUE(Show(pool, 3).ok());
  EXPECT_EQ(Writes(), 0);
  clock_ += std::chrono::minutes(2);
  ASSERT_TRUE(Show(pool, 3).ok());
  EXPECT_EQ(Asked(), 3);
  EXPECT_EQ(Find(*api_.Find("provisioningrequests", kRequest), "status"), nullptr);
}

TEST_F(ScalingSignalTest, KeepsExistingRequestAfterRestart) {
  const NodePool pool = Pool(PoolSignal::kProvisioningRequest);
  ASSERT_TRUE(Show(pool, 3).ok());
  Writes();
  signal_ = ScalingSignal(config_);
  ASSERT_TRUE(Show(pool, 3).ok());
  EXPECT_EQ(Writes(), 0);
}

TEST_F(ScalingSignalTest, TakesOverPodTemplateLeftByCrash) {
  api_.Put(
      {{"kind", "PodTemplate"}, {"metadata", {{"namespace", "nos"}, {"name", "nos-demand-a100"}}}});
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 1).ok());
  EXPECT_NE(Find(*api_.Find("podtemplates", kRequest), "template"), nullptr);
  EXPECT_EQ(Asked(), 1);
}

TEST_F(ScalingSignalTest, ReportsClusterWithoutProvisioningRequests) {
  Refuse(api_, "", "provisioningrequests", kube::HttpStatus(404, "the server has no such"));
  const Status shown = Show(Pool(PoolSignal::kProvisioningRequest), 1);
  EXPECT_EQ(shown.code(), Code::kInvalid);
  EXPECT_NE(shown.message().find("install"), std::string::npos) << shown.message();
  EXPECT_TRUE(signal_.Clean(Look(), client_).ok());
}

TEST_F(ScalingSignalTest, DoesNotUseProvisioningRequestsWhenDisabled) {
  config_.provisioning_requests = false;
  signal_ = ScalingSignal(config_);
  bool asked = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    asked = asked || request.path.find("provisioningrequests") != std::string::npos;
    return std::nullopt;
  };
  EXPECT_EQ(Show(Pool(PoolSignal::kProvisioningRequest), 1).code(), Code::kInvalid);
  EXPECT_TRUE(signal_.Clean(Look(), client_).ok());
  EXPECT_FALSE(asked);
}

TEST_F(ScalingSignalTest, DeletesDemandObjectsOfRemovedPools) {
  PutPool("stays", "Pods");
  PutPool("changed", "ProvisioningRequest");
  for (const char* name : {"stays", "changed", "gone"}) {
    ASSERT_TRUE(Show(Pool(PoolSignal::kWaitingPods, name), 1).ok());
  }
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 1).ok());
  signal_ = ScalingSignal(config_);  // without memory of earlier requests
  ASSERT_TRUE(signal_.Clean(Look(), client_).ok());
  EXPECT_EQ(Pods(), "nos-demand-stays-0");
  EXPECT_EQ(Asked(), 0);
  EXPECT_EQ(api_.Find("podtemplates", kRequest), nullptr);
}

TEST_F(ScalingSignalTest, DeletesDemandObjectsInFormerNamespace) {
  PutPool("a100", "ProvisioningRequest");
  PutPool("pods", "Pods");
  ASSERT_TRUE(Show(Pool(PoolSignal::kWaitingPods, "pods"), 1).ok());
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 2).ok());
  config_.ns = "nos-placeholders";
  config_.former_ns = "nos";
  signal_ = ScalingSignal(config_);
  ASSERT_TRUE(signal_.Clean(Look(), client_).ok());
  EXPECT_EQ(Pods(), "");
  EXPECT_EQ(Asked(), 0);
  EXPECT_EQ(api_.Find("podtemplates", kRequest), nullptr);
}

TEST_F(ScalingSignalTest, KeepsRequestsOfExistingPools) {
  PutPool("a100", "ProvisioningRequest");
  ASSERT_TRUE(Show(Pool(PoolSignal::kProvisioningRequest), 2).ok());
  ASSERT_TRUE(signal_.Clean(Look(), client_).ok());
  EXPECT_EQ(Asked(), 2);
}

}  // namespace
}  // namespace nos::controllers
