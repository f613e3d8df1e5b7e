// No pod that could run starves: waiting raises its rank, and finally slots are kept for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "planning/translation/pod_classes.h"

namespace nos::planning {
namespace {

using std::chrono::minutes;
using testing::ClusterBuilder;
using testing::LayoutText;
using testing::PlanFault;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
const Time kNow = Time{} + std::chrono::hours(1000);

PlanOptions Options() {
  PlanOptions options;
  options.now = kNow;
  return options;
}

const PodOutcome& Outcome(const Plan& plan, const std::string& name) {
  return *std::find_if(plan.pods.begin(), plan.pods.end(),
                       [&](const PodOutcome& p) { return p.pod->meta.name == name; });
}

Plan Checked(const ClusterBuilder& cluster, const PlanOptions& options = Options()) {
  Plan plan = cluster.MakePlan(options);
  EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
  return plan;
}

void Age(cluster::Pod& pod, minutes wait) { pod.meta.created = kNow - wait; }

TEST(StarvationTest, WaitRankGrowsWithEveryDoublingOfWait) {
  cluster::Pod pod;
  EXPECT_EQ(WaitRank(pod, Options()), 0);  // unknown age
  for (const auto& [wait, wait_rank] : std::map<int, int>{
           {0, 0}, {9, 0}, {10, 1}, {19, 1}, {20, 2}, {39, 2}, {40, 3}, {80, 4}, {10'240, 11}}) {
    Age(pod, minutes(wait));
    EXPECT_EQ(WaitRank(pod, Options()), wait_rank) << wait << " minutes";
  }
}

TEST(StarvationTest, ServesLongWaitingPodsFirstWithinPriority) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""});
  for (int i = 0; i < 7; ++i) Age(cluster.Pod("new" + std::to_string(i), {"1g.5gb"}), minutes(1));
  Age(cluster.Pod("old", {"7g.40gb"}), minutes(11));
  EXPECT_TRUE(Outcome(Checked(cluster), "old").placed);
  cluster.Pod("higher", {"1g.5gb"}, 1);  // priority outranks waiting time
  const Plan plan = Checked(cluster);
  EXPECT_FALSE(Outcome(plan, "old").placed);
  EXPECT_TRUE(Outcome(plan, "higher").placed);
}

ClusterBuilder TwoBusyGpus(minutes wait) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"3g.20gb@4:used,1g.5gb@0:used", "1g.5gb@6:used"});
  Age(cluster.Pod("big", {"7g.40gb"}), wait);
  for (int i = 0; i < 9; ++i) Age(cluster.Pod("s" + std::to_string(i), {"1g.5gb"}), minutes(1));
  return cluster;
}

TEST(StarvationTest, KeepsSlotsWhereTheyBecomeFreeSoonest) {
  const Plan patient = Checked(TwoBusyGpus(minutes(5)));
  EXPECT_EQ(patient.placed, 9);
  const Plan plan = Checked(TwoBusyGpus(minutes(15)));
  EXPECT_EQ(plan.placed, 3);  // only beside the GPU with more instances in the way
  EXPECT_EQ(LayoutText(plan, "a", 1), "");
  EXPECT_EQ(Outcome(plan, "big").reasons[0].code, "SlotsKept");
  const PodOutcome& waiting = *std::find_if(plan.pods.begin(), plan.pods.end(), [](const auto& p) {
    return !p.placed && p.pod->meta.name != "big";
  });
  EXPECT_EQ(waiting.reasons[0].code, "SlotsKeptForOthers");
  EXPECT_EQ(waiting.remedy, "wait until pod x/big is served: room on node a is kept for it");
}

// With few clients per GPU, memory alone is not enough for the pending pod.
TEST(StarvationTest, KeepsNumberOfSharesToo) {
  const auto small = [](minutes wait) {
    ClusterBuilder cluster;
    cluster.HybridNode("a", {"MPS-39GB+CLIENTS-2 1gb@0:used"});
    Age(cluster.Pod("two", {"5gb", "5gb"}), wait);
    Age(cluster.Pod("small", {"1gb"}), minutes(1));
    return Outcome(Checked(cluster), "small");
  };
  EXPECT_TRUE(small(minutes(5)).placed);
  const PodOutcome kept = small(minutes(15));
  EXPECT_FALSE(kept.placed);
  EXPECT_EQ(kept.reasons[0].code, "SlotsKeptForOthers");
}

TEST(StarvationTest, HigherPriorityMayStillTakeKeptSlots) {
  ClusterBuilder cluster = TwoBusyGpus(minutes(15));
  for (int i = 0; i < 6; ++i) cluster.Pod("vip" + std::to_string(i), {"1g.5gb"}, 10);
  const Plan plan = Checked(cluster);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(Outcome(plan, "vip" + std::to_string(i)).placed) << i;
  }
}

TEST(StarvationTest, KeepsNoSlotsForImpossiblePods) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {"1g.5gb@6:used"});
  Age(cluster.Pod("hopeless", {"4g.24gb"}), minutes(500));           // no such GPU
  Age(cluster.Pod("greedy", {"7g.40gb"}, 0, "1000"), minutes(500));  // no node has that much cpu
  Age(cluster.Pod("new", {"3g.20gb"}), minutes(1));
  EXPECT_TRUE(Outcome(Checked(cluster), "new").placed);
}

// Simulates rounds: pods end, others arrive, each plan is carried out immediately.
class Rounds {
 public:
  explicit Rounds(Duration hold_after) { options_.hold_after = hold_after; }

  // Number of rounds until the whole-GPU pod is served, at most `most`.
  int UntilBigIsServed(int most) {
    for (int round = 0; round < most; ++round) {
      options_.now = kNow + minutes(round);
      if (Step(round)) return round;
    }
    return most;
  }

 private:
  struct Job {
    std::string name;
    Time created;
    int ends = 0;  // round
    AssignedDevice device;
  };

  bool Step(int round) {
    std::erase_if(running_, [&](const Job& j) { return j.ends <= round; });
    for (int i = 0; i < 4; ++i) {
      waiting_.push_back({"s" + std::to_string(next_++), options_.now, 0, {}});
    }
    const Plan plan = Checked(Build(), options_);
    bool served = false;
    for (const PodOutcome& p : plan.pods) {
      if (!p.placed) continue;
      if (p.pod->meta.name == "big") served = true;
      const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const Job& j) { return j.name == p.pod->meta.name; });
      if (it == waiting_.end()) continue;
      running_.push_back(
          {it->name, it->created, round + 3 + static_cast<int>(random_.Below(5)), p.devices[0]});
      waiting_.erase(it);
    }
    return served;
  }

  ClusterBuilder Build() const {
    std::vector<std::string> layouts(3);
    for (const Job& j : running_) {
      std::string& text = layouts[j.device.gpu];
      text += (text.empty() ? "" : ",") + j.device.profile + "@" +
              std::to_string(j.device.placement.start) + ":used";
    }
    ClusterBuilder cluster;
    cluster.Node("a", kA100, layouts);
    for (const Job& j : waiting_) cluster.Pod(j.name, {"1g.5gb"}).meta.created = j.created;
    cluster.Pod("big", {"7g.40gb"}).meta.created = kNow;
    return cluster;
  }

  PlanOptions options_;
  Random random_{7};
  int next_ = 0;
  std::vector<Job> waiting_, running_{{"first", kNow, 5, {0, {0, 6}, "1g.5gb", true}},
                                      {"second", kNow, 5, {1, {0, 6}, "1g.5gb", true}},
                                      {"third", kNow, 5, {2, {0, 6}, "1g.5gb", true}}};
};

TEST(StarvationTest, ServesBigPodInStreamOfSmallOnes) {
  EXPECT_LT(Rounds(minutes(10)).UntilBigIsServed(80), 30);
  // Without kept slots the stream never lets a GPU become empty.
  EXPECT_EQ(Rounds(std::chrono::hours(1000)).UntilBigIsServed(80), 80);
}

}  // namespace
}  // namespace nos::planning
