// Pods beside others to whom a node was promised.
#include <optional>
#include <string>

#include "controllers/scheduler_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerNomineesTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& cpu) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}, {"labels", {{"name", name}}}}},
              {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "110"}}}}}});
  }
  // Only for that node.
  void PodFor(const std::string& node, const std::string& name, const std::string& cpu,
              int priority) {
    PutPod(name, "cpu", cpu, priority);
    Json pod = *api_.Find("pods", "ml/" + name);
    MakeObject(pod, "spec")["nodeSelector"] = JsonObject{{"name", node}};
    api_.Put(pod);
  }
};

TEST_F(SchedulerNomineesTest, WhoWasRefusedForAPromiseIsLookedAtWhenItEnds) {
  Node("a", "4");
  Node("b", "2");
  PodFor("b", "low", "1", 0);
  Run();
  ASSERT_EQ(NodeOf("low"), "b");
  api_.intercept = [](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;  // pods that are deleted take their time
    if (request.method == "DELETE") answer = kube::ApiResponse{200, JsonObject{}, {}, {}};
    return answer;
  };
  PodFor("b", "high", "2", 9);
  Run();
  ASSERT_EQ(FindString(*api_.Find("pods", "ml/high"), "status", "nominatedNodeName"), "b");
  PodFor("b", "mid", "1", 5);
  Run();
  EXPECT_EQ(NodeOf("mid"), "") << "there is room, which was promised";
  api_.Remove("pods", "ml/high");
  Run();
  EXPECT_EQ(NodeOf("mid"), "b");
}

TEST_F(SchedulerNomineesTest, SlicesThatHardlyFitAreCut) {
  GpuNode("n", 2);
  PutPod("p", "nvidia.com/mig-1g.5gb", "8", 0);
  Json pod = *api_.Find("pods", "ml/p");
  Json& container = pod.at("spec").at("containers").at(0);
  MakeObject(container, "resources", "limits")["nvidia.com/mig-3g.20gb"] = "2";
  api_.Put(pod);
  Run();
  EXPECT_EQ(Spec("n", 0), "1g.5gb@0,1g.5gb@1,1g.5gb@2,1g.5gb@3,3g.20gb@4");
  EXPECT_EQ(Spec("n", 1), Spec("n", 0));
}

}  // namespace
}  // namespace nos::controllers
