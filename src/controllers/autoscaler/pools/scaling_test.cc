#include "controllers/pool_scaling.h"

#include <gtest/gtest.h>

#include <deque>

#include "kube/testing/fake_api.h"

namespace nos::controllers {
namespace {

Json KindsOf(std::initializer_list<std::pair<const char*, const char*>> kinds) {
  JsonArray resources;
  for (const auto& [plural, kind] : kinds) {
    resources.push_back({{"name", plural}, {"kind", kind}, {"namespaced", true}});
  }
  return {{"kind", "APIResourceList"}, {"resources", std::move(resources)}};
}

class PoolScalingTest : public ::testing::Test {
 protected:
  PoolScalingTest() {
    api_.discovery["/apis/cluster.x-k8s.io/v1beta2"] =
        KindsOf({{"machinedeployments/scale", "Scale"},
                 {"machinedeployments", "MachineDeployment"},
                 {"machines", "Machine"}});
    pool_.meta.name = "a";
    pool_.target = {"cluster.x-k8s.io/v1beta2", "MachineDeployment", "infra", "md"};
    node_.meta.name = "n";
    node_.meta.uid = "uid-n";
  }
  void Deployment(const Json& replicas) {
    api_.Put({{"kind", "MachineDeployment"},
              {"metadata", {{"namespace", "infra"}, {"name", "md"}}},
              {"spec", {{"replicas", replicas}}}});
  }
  int64_t Replicas() const {
    return Find(*api_.Find("machinedeployments", "infra/md"), "spec", "replicas")->get_int64();
  }
  void Machine(const std::string& node) {
    api_.Put({{"kind", "Machine"},
              {"metadata", {{"namespace", "infra"}, {"name", "m"}}},
              {"status", {{"nodeRef", {{"name", node}}}}}});
    node_.meta.annotations = {{"cluster.x-k8s.io/machine", "m"},
                              {"cluster.x-k8s.io/cluster-namespace", "infra"}};
    pool_.delete_annotation = "cluster.x-k8s.io/delete-machine";
  }
  bool IsNamed() const {
    return Find(*api_.Find("machines", "infra/m"), "metadata", "annotations",
                "cluster.x-k8s.io/delete-machine") != nullptr;
  }

  kube::FakeApi api_;
  kube::Client client_{api_};
  PoolScaling scaling_;
  cluster::NodePool pool_;
  cluster::Node node_;
};

TEST_F(PoolScalingTest, ReadsAndWritesTheScale) {
  Deployment(2);
  const auto scale = scaling_.Read(pool_, client_);
  ASSERT_TRUE(scale.ok()) << scale.status().ToString();
  EXPECT_EQ(scale->wanted, 2);
  ASSERT_TRUE(scaling_.Write(pool_, *scale, 5, {}, client_).ok());
  EXPECT_EQ(Replicas(), 5);
  EXPECT_EQ(api_.writes.back().path,
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/infra/machinedeployments/md/scale");
}

TEST_F(PoolScalingTest, RefusesWriteBasedOnOldVersion) {
  Deployment(2);
  const auto scale = scaling_.Read(pool_, client_);
  Deployment(7);
  EXPECT_EQ(scaling_.Write(pool_, *scale, 3, {}, client_).code(), Code::kConflict);
  EXPECT_EQ(Replicas(), 7);
}

TEST_F(PoolScalingTest, ReadsScaleWithoutReplicasAsZero) {
  api_.Put({{"kind", "MachineDeployment"},
            {"metadata", {{"namespace", "infra"}, {"name", "md"}}},
            {"spec", JsonObject()}});
  const auto scale = scaling_.Read(pool_, client_);
  ASSERT_TRUE(scale.ok());
  EXPECT_EQ(scale->wanted, 0);
}

TEST_F(PoolScalingTest, ReportsTargetsThatCannotBeScaled) {
  Deployment("many");
  EXPECT_EQ(scaling_.Read(pool_, client_).status().code(), Code::kInvalid);
  Deployment(-1);
  EXPECT_EQ(scaling_.Read(pool_, client_).status().code(), Code::kInvalid);
  pool_.target.kind = "Machine";
  EXPECT_EQ(scaling_.Read(pool_, client_).status().message(),
            "Machine of cluster.x-k8s.io/v1beta2 has no subresource scale");
  pool_.target.kind = "Unheard";
  EXPECT_EQ(scaling_.Read(pool_, client_).status().code(), Code::kNotFound);
  pool_.target.api_version = "example.com/v9";
  EXPECT_EQ(scaling_.Read(pool_, client_).status().code(), Code::kNotFound);
  pool_.target = {"cluster.x-k8s.io/v1beta2", "MachineDeployment", "", "md"};
  EXPECT_EQ(scaling_.Read(pool_, client_).status().message(),
            "spec.scaleTargetRef.namespace is missing: machinedeployments are of a namespace");
}

TEST_F(PoolScalingTest, FindsKindThatIsInstalledLater) {
  pool_.target.api_version = "infra.example/v1";
  EXPECT_FALSE(scaling_.Read(pool_, client_).ok());
  api_.discovery["/apis/infra.example/v1"] =
      KindsOf({{"machinedeployments", "MachineDeployment"}, {"machinedeployments/scale", "Scale"}});
  Deployment(1);
  EXPECT_TRUE(scaling_.Read(pool_, client_).ok());
}

TEST_F(PoolScalingTest, AnnotatesMachineOfNode) {
  Machine("n");
  ASSERT_TRUE(scaling_.Name(pool_, node_, client_).ok());
  EXPECT_TRUE(IsNamed());
  const size_t writes = api_.writes.size();
  ASSERT_TRUE(scaling_.Name(pool_, node_, client_).ok());
  EXPECT_EQ(api_.writes.size(), writes) << "it is annotated already";
  ASSERT_TRUE(scaling_.Unname(pool_, node_, client_).ok());
  EXPECT_FALSE(IsNamed());
}

TEST_F(PoolScalingTest, DoesNotAnnotateMachineOfAnotherNode) {
  Machine("other");
  EXPECT_EQ(scaling_.Name(pool_, node_, client_).code(), Code::kInvalid);
  EXPECT_FALSE(IsNamed());
  node_.meta.annotations["cluster.x-k8s.io/machine"] = "../../secrets";
  EXPECT_EQ(scaling_.Name(pool_, node_, client_).code(), Code::kInvalid);
  EXPECT_TRUE(api_.writes.empty());
}

TEST_F(PoolScalingTest, AnnotatesNodeWithoutMachine) {
  api_.Put({{"kind", "Node"}, {"metadata", {{"name", "n"}, {"uid", "uid-n"}}}});
  EXPECT_TRUE(scaling_.Name(pool_, node_, client_).ok());
  EXPECT_TRUE(api_.writes.empty()) << "the pool has no annotation for it";
  pool_.delete_annotation = "example.com/go";
  EXPECT_TRUE(scaling_.Name(pool_, node_, client_).ok());
  EXPECT_EQ(FindString(*api_.Find("nodes", "n"), "metadata", "annotations", "example.com/go"),
            "true");
}

TEST_F(PoolScalingTest, ReadsAndWritesScaleOfWebhook) {
  std::deque<Result<std::string>> answers{std::string(R"({"replicas": 4})"), std::string()};
  std::vector<std::string> asked;
  PoolScaling scaling(
      [&](std::string_view method, const std::string& url, const std::string& body) {
        asked.push_back(std::string(method) + " " + url + " " + body);
        Result<std::string> answer = answers.front();
        answers.pop_front();
        return answer;
      });
  pool_.target = {};
  pool_.webhook = "https://infra.example/a";
  const auto scale = scaling.Read(pool_, client_);
  ASSERT_TRUE(scale.ok());
  EXPECT_EQ(scale->wanted, 4);
  ASSERT_TRUE(scaling.Write(pool_, *scale, 3, {"gpu-7"}, client_).ok());
  EXPECT_EQ(asked[0], "GET https://infra.example/a ");
  EXPECT_EQ(asked[1],
            "POST https://infra.example/a "
            R"({"pool":"a","replicas":3,"from":4,"remove":["gpu-7"]})");
  answers = {std::string("<html>"), Status(Code::kConflict, "it has 5")};
  EXPECT_EQ(scaling.Read(pool_, client_).status().code(), Code::kInvalid);
  EXPECT_EQ(scaling.Write(pool_, *scale, 3, {}, client_).code(), Code::kConflict);
  EXPECT_EQ(scaling_.Read(pool_, client_).status().code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace nos::controllers
