// Objects that make pods, in a whole world: scheduler, partitioner and nodes do their part.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/world.h"

namespace nos::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

WorldOptions WithSeed(uint64_t seed) {
  WorldOptions options;
  options.seed = seed;
  return options;
}

class WorkloadsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"n1", "n2"}) {
      NodeSpec node;
      node.name = name;
      node.gpus = {{"A100-40GB", {}}};
      ASSERT_TRUE(world_.AddNode(node).ok());
    }
    ASSERT_TRUE(world_.Boot().ok());
    world_.StartControllers();
  }
  void TearDown() override {
    EXPECT_TRUE(world_.violations().empty()) << world_.violations().front();
  }
  void Create(const std::string& path, const std::string& text) {
    auto body = ParseJson(text);
    ASSERT_TRUE(body.ok()) << text;
    kube::ApiRequest request;
    request.method = "POST";
    request.path = path;
    request.body = std::move(*body);
    const auto answer = world_.api().Do(request);
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer->code, 201) << WriteJson(answer->body);
  }
  Json Get(const std::string& path) {
    kube::ApiRequest request;
    request.method = "GET";
    request.path = path;
    return world_.api().Do(request)->body;
  }
  static std::string Spec(const std::string& more, const std::string& annotations = "{}",
                          const std::string& limits = R"({"nvidia.com/mig-1g.5gb":1})") {
    return R"({"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"a"}},
        "template":{"metadata":{"labels":{"app":"a"},"annotations":)" +
           annotations +
           R"(},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"c",
        "image":"i","resources":{"limits":)" +
           limits + "}}]}}" + more + "}}";
  }
  int64_t Count(const std::string& path, std::string_view field) {
    const Json object = Get(path);
    const Json* count = Find(object, "status", field);
    return count == nullptr ? 0 : count->get_int64();
  }

  World world_{WithSeed(5), gpu::Catalogue::Builtin()};
  const std::string deployments_ = "/apis/apps/v1/namespaces/default/deployments";
};

TEST_F(WorkloadsTest, ADeploymentsPodsGetSlicesAndSurviveTheLossOfANode) {
  Create(deployments_, Spec(R"(,"replicas":4)"));
  world_.RunFor(minutes(1));
  EXPECT_EQ(Count(deployments_ + "/a", "availableReplicas"), 4);
  const Json pods = Get("/api/v1/namespaces/default/pods");
  const Json& status = pods.at("items").at(0).at("status").at("containerStatuses").at(0);
  const Json& devices = status.at("allocatedResourcesStatus").at(0);
  EXPECT_EQ(FindString(devices, "name"), "nvidia.com/mig-1g.5gb");
  EXPECT_FALSE(FindString(devices.at("resources").at(0), "resourceID").empty());

  kube::Client client(world_.api());
  ASSERT_TRUE(client.Delete(kube::kNodes, "", "n1").ok());
  world_.RunFor(minutes(2));
  EXPECT_EQ(Count(deployments_ + "/a", "availableReplicas"), 4);
  for (const auto& pod : world_.Pods()) EXPECT_EQ(pod->node_name, "n2");
}

TEST_F(WorkloadsTest, ADaemonSetRunsOnEachNode) {
  // The partitioner makes no slices for pods of DaemonSets.
  Create("/apis/apps/v1/namespaces/default/daemonsets", Spec("", "{}", R"({"cpu":1})"));
  world_.RunFor(minutes(1));
  EXPECT_EQ(Count("/apis/apps/v1/namespaces/default/daemonsets/a", "numberAvailable"), 2)
      << WriteJson(Get("/api/v1/namespaces/default/pods"));
  NodeSpec node;
  node.name = "n3";
  node.gpus = {{"A100-40GB", {}}};
  ASSERT_TRUE(world_.AddNode(node).ok());
  world_.RunFor(minutes(1));
  EXPECT_EQ(Count("/apis/apps/v1/namespaces/default/daemonsets/a", "numberAvailable"), 3);
}

TEST_F(WorkloadsTest, AJobEndsAfterItsRunTime) {
  Create("/apis/batch/v1/namespaces/default/jobs",
         R"({"metadata":{"name":"a"},"spec":{"completions":2,"template":{"metadata":{"annotations":{
         "sim.nos.nebuly.com/run-seconds":"30"}},"spec":{"restartPolicy":"Never","containers":[
         {"name":"c","image":"i","resources":{"limits":{"nvidia.com/mig-1g.5gb":1}}}]}}}})");
  world_.RunFor(seconds(20));
  EXPECT_EQ(Count("/apis/batch/v1/namespaces/default/jobs/a", "active"), 1);
  world_.RunFor(minutes(2));
  EXPECT_EQ(Count("/apis/batch/v1/namespaces/default/jobs/a", "succeeded"), 2);
}

// The same seed gives the same run, names included.
TEST_F(WorkloadsTest, RunsAreReproducible) {
  const auto run = [] {
    World world(WithSeed(9), gpu::Catalogue::Builtin());
    NodeSpec node;
    node.name = "n";
    node.gpus = {{"A100-40GB", {}}};
    EXPECT_TRUE(world.AddNode(node).ok());
    EXPECT_TRUE(world.Boot().ok());
    world.StartControllers();
    kube::Client client(world.api());
    const Json object =
        ParseJson(Spec(R"(,"replicas":3)", R"({"sim.nos.nebuly.com/run-seconds":"10"})")).value();
    EXPECT_TRUE(client.Create(kDeployments, "default", object).ok());
    world.RunFor(minutes(3));
    return world.log().hash();
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace nos::sim
