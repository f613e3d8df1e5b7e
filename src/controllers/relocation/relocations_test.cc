#include "controllers/relocations.h"

#include "controllers/relocation/fixture_test.h"

namespace nos::controllers {
namespace {

using Kind = RelocationNote::Kind;
using std::chrono::minutes;
using std::chrono::seconds;

class RelocationsTest : public ::testing::Test {
 protected:
  RelocationsTest() {
    w.PutPod("a", "gpu-1");
    w.PutPod("b", "gpu-1");
    w.clock.Advance(seconds(10));
  }
  RelocationWorld w;
};

TEST_F(RelocationsTest, EvictsOnlyAfterAllPlacesAreHeld) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.Step();
  w.SetPlace(0, "Running");
  w.SetPlace(1, "Pending");  // bound, but not admitted
  w.Step();
  w.Step();
  EXPECT_EQ(w.Evictions(), 0);
  w.SetPlace(1, "Running");
  w.Step();
  EXPECT_EQ(w.CountNotes(Kind::kHeld), 1);
  EXPECT_EQ(w.Evictions(), 0) << "the placeholders say first that all are held";
  w.Step();
  EXPECT_EQ(w.Evictions(), 2);
  EXPECT_EQ(w.CountNotes(Kind::kEvicted), 2);
  EXPECT_EQ(w.notes.back().pod, "ml/b");
  EXPECT_EQ(w.notes.back().to, "gpu-2");
  EXPECT_FALSE(w.Has("a") || w.Has("b"));
  const Json& body = w.api.writes.back().body;
  EXPECT_EQ(FindString(body, "deleteOptions", "preconditions", "uid"), "u-b");
}

TEST_F(RelocationsTest, MarksAndCordonsNodeInOneWrite) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  EXPECT_TRUE(w.Node().unschedulable);
  EXPECT_EQ(w.Mark().id, "r-1");
  EXPECT_EQ(w.Mark().pool, "a100");
  EXPECT_EQ(w.Mark().state, Removal::State::kEmptying);
  const auto of_node = [](const kube::ApiRequest& r) { return r.path == "/api/v1/nodes/gpu-1"; };
  EXPECT_EQ(std::ranges::count_if(w.api.writes, of_node), 1);
  EXPECT_TRUE(of_node(w.api.writes.front())) << "before any placeholder";
  EXPECT_EQ(w.Places(), "0 1");
}

TEST_F(RelocationsTest, EmptiedNodeCanBeAskedForAndKept) {
  w.StartAndHold({"a", "b"});
  w.Step();
  w.PutPod("a2", "");
  w.PutPod("b2", "gpu-3");
  w.Step();
  EXPECT_EQ(w.Places(), "") << "successors are there, waiting or not";
  EXPECT_FALSE(w.IsEmptied()) << "somebody may not have seen the cordon yet";
  w.StepAfter(seconds(10));
  EXPECT_TRUE(w.IsEmptied());
  EXPECT_EQ(w.CountNotes(Kind::kMoved), 1);
  w.Step();
  EXPECT_EQ(w.CountNotes(Kind::kMoved), 1);
  ASSERT_TRUE(w.relocations->MarkAsked(w.Node(), 2, w.client, w.clock.Now()).ok());
  EXPECT_EQ(w.Mark().state, Removal::State::kAsked);
  EXPECT_EQ(w.Mark().wanted, 2);
  EXPECT_TRUE(w.Node().unschedulable);
  ASSERT_TRUE(w.relocations->Keep(w.Node(), w.client).ok());
  EXPECT_TRUE(w.IsFree());
}

TEST_F(RelocationsTest, RejectsWritesOfStaleNode) {
  w.Pump();
  const cluster::Node before = w.Node();
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  const cluster::Node marked = w.Node();
  EXPECT_EQ(w.relocations->Keep(before, w.client).code(), Code::kConflict);
  ASSERT_TRUE(w.relocations->Keep(marked, w.client).ok());
  EXPECT_EQ(w.relocations->MarkAsked(marked, 1, w.client, w.clock.Now()).code(), Code::kConflict);
  EXPECT_EQ(w.relocations->MarkAsked(w.Node(), 1, w.client, w.clock.Now()).code(), Code::kInvalid);
}

TEST_F(RelocationsTest, EmptiesNodeWithoutMovablePods) {
  w.api.Remove("pods", "ml/a");
  w.api.Remove("pods", "ml/b");
  w.PutPod("d", "gpu-1", {"DaemonSet", "ds-1"});
  ASSERT_TRUE(w.Start({}).ok());
  w.Step();
  EXPECT_EQ(w.last.again, seconds(10));
  w.StepAfter(seconds(10));
  EXPECT_TRUE(w.IsEmptied()) << "what goes with the node does not count";
  EXPECT_TRUE(w.Has("d"));
}

TEST_F(RelocationsTest, KeepsEarlierCordonWhenCalledOff) {
  w.PutNode("gpu-1", true);
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.Pump();
  EXPECT_TRUE(w.relocations->CallOff("gpu-1", "it is needed", w.view, w.client, w.clock.Now()));
  EXPECT_TRUE(w.Node().unschedulable);
  EXPECT_FALSE(w.Node().meta.annotations.contains(kRemoval));
}

TEST_F(RelocationsTest, HoldTimeoutCallsRelocationOff) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.Step();
  EXPECT_EQ(w.last.again, minutes(3));
  w.SetPlace(0, "Running");
  w.StepAfter(minutes(3));
  EXPECT_EQ(w.Places(), "");
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.Evictions(), 0);
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "ml/b"), 1);
  EXPECT_EQ(w.notes.back().pool, "a100");
  w.Step();
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff), 1);
}

TEST_F(RelocationsTest, RetriesRefusedEvictionUntilDrainDeadline) {
  w.api.Put({{"kind", "PodDisruptionBudget"},
             {"metadata", {{"namespace", "ml"}, {"name", "web"}}},
             {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}},
             {"status", {{"disruptionsAllowed", 1}}}});
  w.StartAndHold({"a", "b"});
  w.Step();
  EXPECT_EQ(w.Evictions(), 2);
  EXPECT_FALSE(w.Has("a"));
  EXPECT_TRUE(w.Has("b"));
  EXPECT_EQ(w.last.again, seconds(5));
  EXPECT_TRUE(w.last.error.ok());
  w.Step();
  EXPECT_EQ(w.Evictions(), 2) << "not before some time has passed";
  w.PutPod("a2", "");
  w.StepAfter(seconds(5));
  EXPECT_EQ(w.Evictions(), 3);
  EXPECT_EQ(w.Places(), "1") << "the place of a is its successor's";
  w.StepAfter(minutes(15));
  EXPECT_EQ(w.Places(), "");
  EXPECT_TRUE(w.Has("b"));
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "pod ml/b"), 1);
}

TEST_F(RelocationsTest, ForbiddenEvictionCallsOffTheRest) {
  w.api.intercept = [](const kube::ApiRequest& r) -> std::optional<Result<kube::ApiResponse>> {
    if (!r.path.ends_with("/b/eviction")) return std::nullopt;
    return kube::ApiResponse{403, {{"kind", "Status"}, {"message", "not allowed"}}};
  };
  w.StartAndHold({"a", "b"});
  w.Step();
  EXPECT_EQ(w.Evictions(), 2);
  EXPECT_EQ(w.Places(), "0");
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "not allowed"), 1);
  w.PutPod("a2", "");
  w.Step();
  EXPECT_EQ(w.Places(), "");
  EXPECT_EQ(w.Evictions(), 2);
}

TEST_F(RelocationsTest, ReleasesPlaceOfPodThatEndsByItself) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.Step();
  w.api.Remove("pods", "ml/a");
  w.Step();
  EXPECT_EQ(w.Places(), "1");
  w.Restart();
  w.SetPlace(1, "Running");
  w.StepAfter(seconds(30));
  w.Step();
  EXPECT_EQ(w.Evictions(), 1);
  EXPECT_FALSE(w.Has("b"));
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff), 0);
}

TEST_F(RelocationsTest, DoesNotEvictReplacedPod) {
  const Maker set{"StatefulSet", "set-1"};
  w.PutPod("a", "gpu-1", set);
  w.StartAndHold({"a", "b"});
  w.api.Remove("pods", "ml/a");
  w.PutPod("a", "gpu-3", set, "u-later");
  w.Step();
  EXPECT_TRUE(w.Has("a"));
  EXPECT_EQ(w.Evictions(), 1);
  EXPECT_EQ(w.Places(), "1");
}

TEST_F(RelocationsTest, CountsEachSuccessorOnceAcrossRestart) {
  w.StartAndHold({"a", "b"});
  w.Step();
  w.PutPod("a2", "");
  w.Step();
  EXPECT_EQ(w.Places(), "1");
  w.Step();
  EXPECT_EQ(w.Places(), "1");
  w.Restart();
  w.Step();
  EXPECT_EQ(w.Places(), "1");
  w.PutPod("b2", "");
  w.Step();
  EXPECT_EQ(w.Places(), "");
}

TEST_F(RelocationsTest, IgnoresOlderAndForeignPodsAsSuccessors) {
  w.api.Remove("pods", "ml/b");
  w.PutPod("old", "gpu-3");
  w.clock.Advance(seconds(2));
  w.StartAndHold({"a"});
  w.PutPod("other", "", {"ReplicaSet", "rs-2"});
  w.PutPod("set-7", "", {"StatefulSet", "rs-1"});
  w.Step();
  w.Step();
  EXPECT_EQ(w.Places(), "0");
}

TEST_F(RelocationsTest, ReleasesPlaceWithoutSuccessorAfterDeadline) {
  w.StartAndHold({"a", "b"});
  w.Step();
  w.Step();
  EXPECT_EQ(w.last.again, seconds(10)) << "then the node may be said to be empty";
  w.StepAfter(seconds(29));
  EXPECT_EQ(w.Places(), "0 1");
  w.StepAfter(seconds(1));
  EXPECT_EQ(w.Places(), "");
}

TEST_F(RelocationsTest, WaitsForSlowlyTerminatingPods) {
  w.api.evicted_end_at = FormatTime(w.clock.Now() + seconds(60));
  w.StartAndHold({"a", "b"});
  w.Step();
  w.PutPod("a2", "");
  w.Step();
  EXPECT_EQ(w.Places(), "1") << "a successor may come before the pod has ended";
  w.StepAfter(seconds(50));
  EXPECT_FALSE(w.IsEmptied());
  EXPECT_EQ(w.Places(), "1") << "the other may come still";
  EXPECT_EQ(w.Evictions(), 2);
  w.api.Remove("pods", "ml/a");
  w.api.Remove("pods", "ml/b");
  w.Step();
  EXPECT_TRUE(w.IsEmptied());
}

TEST_F(RelocationsTest, KeepsNodeCordonedUntilSuccessorsHaveNodes) {
  w.PutPod("big", "", {"Job", "job-1"});
  w.StartAndHold({"a"}, "ml/big");
  EXPECT_TRUE(w.Node().unschedulable) << "a successor would take the room";
  EXPECT_FALSE(RemovalOf(w.Node()).has_value());
  w.Step();
  EXPECT_FALSE(w.Has("a"));
  EXPECT_TRUE(w.Has("b"));
  w.PutPod("a2", "");
  w.Step();
  EXPECT_EQ(w.Places(), "");
  EXPECT_EQ(w.CountNotes(Kind::kMoved), 1);
  EXPECT_EQ(w.notes.back().for_pod, "ml/big");
  w.Step();
  EXPECT_TRUE(w.Node().unschedulable) << "a2 has no node yet";
  EXPECT_TRUE(w.relocations->Busy(w.view).contains("ml/big"));
  w.PutPod("a2", "gpu-2");
  w.Step();
  EXPECT_FALSE(w.Node().unschedulable);
  EXPECT_FALSE(MovesAwayOf(w.Node()).has_value());
  w.Pump();
  EXPECT_TRUE(w.relocations->Busy(w.view).empty());
}

TEST_F(RelocationsTest, UncordonsNodeWhenSuccessorStaysPending) {
  w.PutPod("big", "", {"Job", "job-1"});
  w.StartAndHold({"a"}, "ml/big");
  w.Step();
  w.PutPod("a2", "");
  w.Step();
  w.Step();
  ASSERT_TRUE(w.Node().unschedulable);
  w.StepAfter(w.config.successor_timeout);
  EXPECT_FALSE(w.Node().unschedulable);
}

TEST_F(RelocationsTest, UncordonsNodeAfterRestart) {
  w.PutPod("big", "", {"Job", "job-1"});
  w.StartAndHold({"a"}, "ml/big");
  w.Step();
  w.PutPod("a2", "");
  w.Step();
  w.Restart();
  w.Step();
  ASSERT_TRUE(w.Node().unschedulable) << "who is waited for is not known any more";
  w.StepAfter(w.config.successor_timeout);
  w.StepAfter(w.config.successor_timeout);
  EXPECT_FALSE(w.Node().unschedulable);
}

TEST_F(RelocationsTest, KeepsEarlierCordonAfterMovesForPod) {
  w.PutPod("big", "", {"Job", "job-1"});
  w.PutNode("gpu-1", true);
  ASSERT_TRUE(w.Start({"a"}, "r-1", "ml/big").ok());
  w.Step();
  w.PutPod("big", "gpu-3", {"Job", "job-1"});
  w.Step();
  w.Step();
  EXPECT_FALSE(w.Node().meta.annotations.contains(kMovesAway));
  EXPECT_TRUE(w.Node().unschedulable);
}

TEST_F(RelocationsTest, RemovesUnreadableMovesAwayMark) {
  Json node = *w.api.Find("nodes", "gpu-2");
  MakeObject(node, "metadata", "annotations")[kMovesAway] = "{\"id\":7}";
  MakeObject(node, "spec")["unschedulable"] = true;
  w.api.Put(std::move(node));
  w.Step();
  EXPECT_FALSE(w.Node("gpu-2").meta.annotations.contains(kMovesAway));
  EXPECT_TRUE(w.Node("gpu-2").unschedulable) << "nobody knows who did that";
}

TEST_F(RelocationsTest, LatePlaceholdersKeepNodeCordoned) {
  w.PutPod("big", "", {"Job", "job-1"});
  ASSERT_TRUE(w.Start({"a"}, "r-1", "ml/big").ok());
  w.nodes.Pump(w.client, w.clock.Now());
  w.StepStale();  // the caches show the mark, but no placeholder
  w.Step();
  w.RunPlaces(1);
  w.StepAfter(w.config.successor_timeout);
  w.Step();
  ASSERT_FALSE(w.Has("a"));
  w.PutPod("a2", "");
  w.Step();
  ASSERT_EQ(w.Places(), "");
  w.Step();
  EXPECT_TRUE(w.Node().unschedulable) << "a2 has no node yet";
}

TEST_F(RelocationsTest, UncordonsNodeWithFutureMark) {
  w.PutPod("big", "", {"Job", "job-1"});
  Json node = *w.api.Find("nodes", "gpu-2");
  MakeObject(node, "metadata", "annotations")[kMovesAway] =
      WriteMovesAway({"r-1", "ml/big", w.clock.Now() + std::chrono::hours(1000), false});
  MakeObject(node, "spec")["unschedulable"] = true;
  w.api.Put(std::move(node));
  w.Step();
  w.StepAfter(w.config.successor_timeout);
  EXPECT_FALSE(w.Node("gpu-2").unschedulable);
  w.Pump();
  EXPECT_TRUE(w.relocations->Busy(w.view).empty()) << "nodes may come for it";
}

TEST_F(RelocationsTest, CallsOffMovesForPodThatHasNode) {
  w.PutPod("big", "", {"Job", "job-1"});
  w.StartAndHold({"a"}, "ml/big");
  w.PutPod("big", "gpu-3", {"Job", "job-1"});
  w.Step();
  EXPECT_EQ(w.Evictions(), 0);
  EXPECT_EQ(w.Places(), "");
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "has a node already"), 1);
}

TEST_F(RelocationsTest, ReportsBusyPodsAndRelocationCount) {
  w.PutPod("big", "", {"Job", "job-1"});
  ASSERT_TRUE(w.Start({"a"}, "r-1", "ml/big").ok());
  w.Pump();
  const auto busy = w.relocations->Busy(w.view);
  EXPECT_EQ(std::vector<std::string>(busy.begin(), busy.end()),
            (std::vector<std::string>{"ml/a", "ml/big"}));
  EXPECT_EQ(w.relocations->Count(w.view), 1);
  EXPECT_EQ(w.Start({"b"}, "r-2").code(), Code::kConflict) << "pods move away from the node";
  w.Pump();
  EXPECT_EQ(w.relocations->Count(w.view), 1);
}

TEST_F(RelocationsTest, CallOffKeepsNodeBeforeFirstEviction) {
  w.StartAndHold({"a", "b"});
  EXPECT_TRUE(w.relocations->CallOff("gpu-1", "it is needed", w.view, w.client, w.clock.Now()));
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.Places(), "");
  w.Step();
  EXPECT_EQ(w.Evictions(), 0);
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "it is needed"), 1);
  EXPECT_TRUE(w.relocations->CallOff("gpu-1", "again", w.view, w.client, w.clock.Now()));
}

TEST_F(RelocationsTest, CallOffIsRefusedAfterFirstEviction) {
  w.StartAndHold({"a", "b"});
  w.Step();  // the caches do not show it yet
  EXPECT_FALSE(w.relocations->CallOff("gpu-1", "it is needed", w.view, w.client, w.clock.Now()));
  w.Pump();
  EXPECT_FALSE(w.relocations->CallOff("gpu-1", "it is needed", w.view, w.client, w.clock.Now()));
  EXPECT_EQ(w.Places(), "0 1");
  w.Step();
  w.StepAfter(seconds(30));
  w.Step();
  ASSERT_TRUE(w.IsEmptied());
  w.Pump();
  EXPECT_TRUE(w.relocations->CallOff("gpu-1", "it is needed", w.view, w.client, w.clock.Now()));
  EXPECT_TRUE(w.IsFree());
}

TEST(RelocationIdTest, AreUniqueValidLabels) {
  EXPECT_EQ(Relocations::NewId(0), "r-0");
  EXPECT_EQ(Relocations::NewId(35), "r-z");
  EXPECT_EQ(Relocations::NewId(36), "r-10");
  EXPECT_TRUE(IsRelocationId(Relocations::NewId(UINT64_MAX)));
  for (const char* bad : {"", "-", "r-", "R-1", "a/b", "r.1"}) EXPECT_FALSE(IsRelocationId(bad));
}

}  // namespace
}  // namespace nos::controllers
