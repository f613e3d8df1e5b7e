// When nodes are drained and removed, how pools are asked, and which pods are moved.
#include "controllers/autoscaler/fixture_test.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

using State = Removal::State;

class AutoscalerShrinkTest : public AutoscalerTest {
 protected:
  // Long-existing nodes "a1", "a2"...
  void Nodes(int count) {
    for (int i = 1; i <= count; ++i) Node("a" + std::to_string(i), "a");
  }
  Removal Of(State state, std::optional<int32_t> wanted = std::nullopt) {
    return {state, "a", fmt::format("r-{}", ++ids_), clock_.Now(), wanted};
  }

  int ids_ = 0;
};

TEST_F(AutoscalerShrinkTest, RemovesIdleNodesDownToMinimumAfterStabilisation) {
  Pool("a", "1", 5, 1, 3);
  Nodes(3);
  Run(minutes(9));
  EXPECT_TRUE(Marked().empty());
  EXPECT_EQ(Wanted("a"), 3);
  Run(minutes(3));
  EXPECT_EQ(Wanted("a"), 1);
  const std::set<std::string> gone = Marked();
  EXPECT_EQ(gone.size(), 2U);
  EXPECT_EQ(Decisions("shrink"), 2);
  EXPECT_GE(CountEvents("ScaledDown"), 1);
  for (const std::string& name : gone) api_.Remove("nodes", name);
  Run(hours(1));
  EXPECT_EQ(Wanted("a"), 1) << "no further";
  EXPECT_TRUE(Marked().empty());
  EXPECT_GE(CountEvents("NodeRemoved"), 1);
  EXPECT_EQ(StatusOf("a", "nodes")->get_int64(), 1);
}

TEST_F(AutoscalerShrinkTest, RemovesNothingFromPoolThatCannotNameNodes) {
  Pool("a", "1", 5, 0, 1);
  Change("nodepools", "a", [](Json& pool) { MakeObject(pool, "spec").erase("deleteAnnotation"); });
  Nodes(1);
  Run(hours(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_TRUE(Marked().empty());
}

TEST_F(AutoscalerShrinkTest, GrowthDelaysRemovals) {
  Pool("a", "1", 5, 0, 1);
  Nodes(1);
  Pool("b", "1", 1);
  Run(minutes(8));
  Pod("p", "8", "b");
  Run(seconds(30));
  ASSERT_EQ(Wanted("b"), 1);
  Node("b1", "b");
  Run(seconds(5));
  Bind("p", "b1");
  Run(minutes(9));
  EXPECT_TRUE(Marked().empty());
  Run(minutes(4));
  EXPECT_EQ(Wanted("a"), 0);
}

TEST_F(AutoscalerShrinkTest, PodWithForgedPlaceholderLabelDoesNotStopRemovals) {
  Pool("a", "1", 5, 0, 1);
  Nodes(1);
  Pod("liar", "100");
  Change("pods", "ml/liar",
         [](Json& pod) { MakeObject(pod, "metadata", "labels")[kPlaceholder] = "r-1"; });
  Run(minutes(15));
  EXPECT_EQ(Marked(), std::set<std::string>{"a1"});
}

// The autoscaler crashed after it wrote the mark and before it asked the pool.
TEST_F(AutoscalerShrinkTest, AsksPoolOnceAfterCrashBeforeRequest) {
  Pool("a", "1", 5, 0, 2);
  Nodes(2);
  Mark("a1", Of(State::kAsked, 1));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  Restart();
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
}

// Karpenter counts finished pods like running ones when it chooses the node that goes.
TEST_F(AutoscalerShrinkTest, EvictsFinishedPodsBeforeAKarpenterPoolShrinks) {
  for (const char* api_version : {"infra.example/v1", "karpenter.sh/v1"}) {
    api_.discovery[std::string("/apis/") + api_version] = api_.discovery["/apis/infra.example/v1"];
    Pool("a", "1", 5, 0, 2);
    Change("nodepools", "a", [&](Json& pool) {
      MakeObject(pool, "spec", "scaleTargetRef")["apiVersion"] = api_version;
    });
    Nodes(2);
    Pod("done", "1");
    Change("pods", "ml/done", [](Json& pod) {
      MakeObject(pod, "spec")["nodeName"] = "a1";
      MakeObject(pod, "status")["phase"] = "Succeeded";
    });
    Restart();
    api_.writes.clear();
    Mark("a1", Of(State::kAsked, 1));
    Run(minutes(1));
    EXPECT_EQ(Wanted("a"), 1);
    const bool karpenter = std::string_view(api_version).starts_with("karpenter");
    EXPECT_EQ(api_.Find("pods", "ml/done") == nullptr, karpenter);
    const auto written = [&](std::string_view part) {
      return std::ranges::find_if(api_.writes, [&](const kube::ApiRequest& request) {
        return request.path.find(part) != std::string::npos;
      });
    };
    if (!karpenter) continue;
    EXPECT_LT(written("/eviction"), written("/scale"));
  }
}

// The autoscaler crashed after it asked the pool and before it recorded that. Then another client
// wants more nodes.
TEST_F(AutoscalerShrinkTest, DoesNotAskPoolAgainAfterCrashBehindRequest) {
  Pool("a", "1", 5, 0, 1);
  Nodes(2);
  Mark("a1", Of(State::kAsked, 1));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  Fleet("a", 3);
  Restart();
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 3) << "later requests of other clients must stand";
}

TEST_F(AutoscalerShrinkTest, AsksPoolOnceForEachOfSeveralEmptyNodes) {
  Pool("a", "1", 5, 0, 4);
  Nodes(4);
  for (const char* name : {"a1", "a2", "a3"}) Mark(name, Of(State::kEmptied));
  int puts = 0;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    puts += IsScale(request) ? 1 : 0;
    if (!IsScale(request) || puts != 2) return std::nullopt;
    return kube::HttpStatus(409);
  };
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_EQ(puts, 4);
}

TEST_F(AutoscalerShrinkTest, KeepsEmptyNodeOfPoolAtMinimum) {
  Pool("a", "1", 5, 2, 2);
  Nodes(2);
  Mark("a1", Of(State::kEmptied));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_TRUE(Marked().empty());
  EXPECT_GE(CountEvents("NodeKept"), 1);
  EXPECT_EQ(Decisions("keep"), 1);
}

TEST_F(AutoscalerShrinkTest, IgnoresRemovalMarkOnNodeWithRunningPods) {
  Pool("a", "1", 5, 0, 2);
  Nodes(2);
  Pod("p", "6");
  Bind("p", "a1");
  Mark("a1", Of(State::kAsked, 0));  // a kubelet may write its node's annotations
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_TRUE(Marked().empty());
}

// The mark says that the pool has been asked, and the pool wants no more than it says.
TEST_F(AutoscalerShrinkTest, DoesNotConfirmRemovalOfNodeWithRunningPods) {
  Pool("a", "1", 5, 0, 2);
  Nodes(2);
  Pod("p", "6");
  Bind("p", "a1");
  Mark("a1", Of(State::kAsked, 2));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_TRUE(Marked().empty());
  EXPECT_EQ(Decisions("keep"), 1);
}

TEST_F(AutoscalerShrinkTest, RemovesInvalidMarkAndLeavesNodeCordoned) {
  Pool("a", "1", 5, 2, 2);
  Nodes(2);
  Change("nodes", "a1", [](Json& node) {
    MakeObject(node, "metadata", "annotations")[kRemoval] = "gone soon";
    MakeObject(node, "spec")["unschedulable"] = true;
  });
  Run(minutes(1));
  EXPECT_TRUE(Marked().empty());
  EXPECT_EQ(*nos::Find(*api_.Find("nodes", "a1"), "spec", "unschedulable"), Json(true));
  EXPECT_GE(CountEvents("BadRemovalMark"), 1);
  EXPECT_THAT(Events(), HasSubstr("Removing invalid annotation nos.nebuly.com/removal of Node: "));
  EXPECT_THAT(Events(), HasSubstr(". The Node stays cordoned, because it is not known who "));
}

TEST_F(AutoscalerShrinkTest, CountsConcurrentScaleDownForOneOfTwoEmptyNodes) {
  Pool("a", "1", 5, 0, 2);
  Nodes(3);
  for (const char* name : {"a1", "a2"}) Mark(name, Of(State::kEmptied));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
}

TEST_F(AutoscalerShrinkTest, CountsConcurrentScaleDownForTheEmptyNode) {
  Pool("a", "1", 5, 0, 1);
  Nodes(2);
  Mark("a1", Of(State::kEmptied));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1) << "one of the two is being removed already";
}

TEST_F(AutoscalerShrinkTest, NamesNodeToWebhookAfterConcurrentScaleDown) {
  std::vector<std::string> posted;
  webhook_ = [&](std::string_view method, const std::string&,
                 const std::string& body) -> Result<std::string> {
    if (method == "GET") return std::string(R"({"replicas":1})");
    posted.push_back(body);
    return std::string();
  };
  Restart();
  HookedPool("a");
  Nodes(2);
  Mark("a1", Of(State::kEmptied));
  Run(minutes(1));
  EXPECT_THAT(posted,
              ::testing::ElementsAre(R"({"pool":"a","replicas":1,"from":1,"remove":["a1"]})"));
}

TEST_F(AutoscalerShrinkTest, KeepsNodeIfPoolRemovedAnotherOne) {
  Pool("a", "1", 5, 0, 2);
  Nodes(3);
  Mark("a1", Of(State::kAsked, 2));
  Run(minutes(1));
  api_.Remove("nodes", "a3");  // instead of a1
  Pod("p", "6");
  Bind("p", "a2");
  Run(minutes(10));
  EXPECT_EQ(Marked(), std::set<std::string>{"a1"});
  Run(minutes(7));
  EXPECT_FALSE(Marked().contains("a1"));
  EXPECT_GE(CountEvents("NodeKept"), 1);
}

TEST_F(AutoscalerShrinkTest, ReportsNodeThatIsNotRemovedInTime) {
  Pool("a", "1", 5, 0, 1);
  Nodes(2);
  Pod("p", "6");
  Bind("p", "a2");
  Mark("a1", Of(State::kAsked, 1));
  Run(minutes(20));
  EXPECT_GE(CountEvents("NodeNotRemoved"), 1);
  EXPECT_EQ(Marked(), std::set<std::string>{"a1"});
}

TEST_F(AutoscalerShrinkTest, KeepsEmptyNodeOfDeletedPool) {
  Nodes(1);
  Mark("a1", Of(State::kEmptied));
  Run(minutes(1));
  EXPECT_TRUE(Marked().empty());
}

TEST_F(AutoscalerShrinkTest, KeepsNodeCordonedUntilDeadlineIfItsPoolIsDeleted) {
  Nodes(1);
  Mark("a1", Of(State::kAsked, cluster::kMaxPoolNodes));
  Run(minutes(10));
  EXPECT_EQ(Marked(), std::set<std::string>{"a1"});
  Run(minutes(10));
  EXPECT_TRUE(Marked().empty()) << "it was not removed";
}

TEST_F(AutoscalerShrinkTest, RemovesDeleteAnnotationFromKeptNodeOfDeletedPool) {
  Pool("a", "1", 5, 0, 2);
  Nodes(2);
  Refuse(api_, "PUT", "/scale", kube::HttpStatus(503));
  Mark("a1", Of(State::kEmptied));
  Run(seconds(3));
  const auto is_named = [&] {
    const Json& node = *api_.Find("nodes", "a1");
    return !FindString(node, "metadata", "annotations", "infra.example/goes").empty();
  };
  ASSERT_TRUE(is_named());
  api_.Remove("nodepools", "a");
  Run(minutes(1));
  EXPECT_TRUE(Marked().empty());
  EXPECT_FALSE(is_named());
}

// Its capacity is available sooner than that of a new node.
TEST_F(AutoscalerShrinkTest, CancelsRemovalOfNodeThatPendingPodNeeds) {
  Pool("a", "1", 5, 0, 1);
  Nodes(1);
  const auto refused = Refuse(api_, "PUT", "/scale", kube::HttpStatus(403));
  Mark("a1", Of(State::kEmptied));
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(*refused, 1);
  EXPECT_TRUE(Marked().empty());
  EXPECT_EQ(Wanted("a"), 1);
}

class AutoscalerMovesTest : public AutoscalerTest {
 protected:
  // Half of each of two nodes is used; a pending pod needs a whole one.
  void Fragment() {
    for (const char* name : {"n1", "n2"}) Node(name, "");
    Pod("m1", "4");
    Bind("m1", "n1");
    Pod("m2", "4");
    Bind("m2", "n2");
    Pod("big", "8");
  }
  void With(bool moves, int per_hour) {
    config_.moves = moves;
    config_.max_moves_per_hour = per_hour;
    Restart();
  }
  // One pod moves to the node that must become free for the other pending pod.
  void Cross() {
    With(true, 20);
    Pool("p2", "1", 5, 0, 1);
    Node("n1", "p1");
    Node("n2", "p2");
    Node("n3", "p3");
    for (const char* name : {"n1", "n2"}) {
      Change("nodes", name,
             [](Json& node) { MakeObject(node, "metadata", "labels")["zone"] = "z"; });
    }
    Pod("m1", "3");
    Change("pods", "ml/m1",
           [](Json& pod) { MakeObject(pod, "spec", "nodeSelector")["zone"] = "z"; });
    Bind("m1", "n1");
    Pod("m2", "4");
    Bind("m2", "n2");
    Pod("big", "8", "p1");  // m1 moves to n2
    Change("pods", "ml/big", [](Json& pod) { MakeObject(pod, "spec")["priority"] = 10; });
    Pod("other", "5", "p2");  // m2 moves away from there
  }
  // The node admits the only placeholder.
  void HoldPlace(const std::string& node) {
    const std::vector<Json> pods = api_.All("pods");
    for (Json pod : pods) {
      if (nos::Find(pod, "metadata", "labels", kPlaceholder) == nullptr) continue;
      MakeObject(pod, "spec")["nodeName"] = node;
      MakeObject(pod, "status")["phase"] = "Running";
      api_.Put(std::move(pod));
    }
  }
};

TEST_F(AutoscalerMovesTest, MovesPodForLongPendingPodInsteadOfNewNode) {
  With(true, 20);
  Pool("a", "1", 5);
  Fragment();
  Run(seconds(50));
  EXPECT_EQ(Decisions("move"), 0);
  EXPECT_EQ(Wanted("a"), 0) << "moves will free capacity for it";
  Run(seconds(20));
  EXPECT_EQ(Decisions("move"), 1);
  EXPECT_EQ(Placeholders(), 1);
  EXPECT_EQ(Wanted("a"), 0);
  EXPECT_THAT(ScalingCondition("big"), HasSubstr("True RelocatingPods"));
}

TEST_F(AutoscalerMovesTest, ConflictingMovesWaitBeforeNodesAreRequested) {
  Cross();
  Run(seconds(100));
  EXPECT_EQ(Decisions("move"), 1);
  EXPECT_EQ(Placeholders(), 1);
  EXPECT_EQ(Wanted("p2"), 1) << "moves are planned for it";
  Run(seconds(150));
  EXPECT_EQ(Wanted("p2"), 2) << "the others did not move in time";
}

TEST_F(AutoscalerMovesTest, MovesNoPodAwayFromNodeWithHeldPlaceholder) {
  Cross();
  Run(seconds(100));
  ASSERT_EQ(Placeholders(), 1);
  HoldPlace("n2");
  Run(seconds(20));
  EXPECT_EQ(api_.Find("pods", "ml/m1"), nullptr) << "it is evicted";
  EXPECT_EQ(nos::Find(*api_.Find("nodes", "n2"), "spec", "unschedulable"), nullptr)
      << "the pod's replacement must start there";
  EXPECT_EQ(Decisions("move"), 1);
  EXPECT_EQ(Wanted("p2"), 1) << "the other pod is next";
}

TEST_F(AutoscalerMovesTest, RestartKeepsCountOfMovesInBudget) {
  With(true, 1);
  Pool("a", "1", 5);
  Fragment();
  Run(seconds(70));
  ASSERT_EQ(Placeholders(), 1);
  Restart();
  Run(minutes(4));  // its placeholder was not placed in time
  EXPECT_EQ(Placeholders(), 0);
  EXPECT_EQ(Decisions("move"), 0) << "one move per hour";
  EXPECT_EQ(Wanted("a"), 1);
}

TEST_F(AutoscalerMovesTest, RequestsNodesWhenMoveBudgetIsUsedUp) {
  With(true, 0);
  Pool("a", "1", 5);
  Fragment();
  Run(minutes(1));
  EXPECT_EQ(Placeholders(), 0);
  EXPECT_EQ(Wanted("a"), 1);
}

}  // namespace
}  // namespace nos::controllers
