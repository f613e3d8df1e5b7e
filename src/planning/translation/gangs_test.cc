#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/random.h"
#include "planning/planner.h"
#include "planning/testing/clusters.h"

namespace nos::planning {
namespace {

using std::chrono::minutes;
using testing::ClusterBuilder;
using testing::PlanFault;

constexpr const char* kA30 = "NVIDIA-A30";
constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

class GangsTest : public ::testing::Test {
 protected:
  void Pods(const std::string& prefix, int count, const std::string& profile, int priority = 0) {
    for (int i = 0; i < count; ++i) {
      Pod(prefix + std::to_string(i), profile, priority);
    }
  }
  cluster::Pod& Pod(const std::string& name, const std::string& profile, int priority = 0) {
    ++pods_;
    return cluster_.Pod(name, {profile}, priority);
  }
  // The gang consists of the pods that `add` creates.
  void Gang(const std::string& name, int least, int placed, const std::function<void()>& add) {
    planning::Gang gang{name, least, placed, {}, ""};
    const int first = pods_;
    add();
    for (int i = first; i < pods_; ++i) gang.members.push_back(i);
    options_.gangs.push_back(std::move(gang));
  }
  void Gang(const std::string& name, int least, int count, const std::string& profile,
            int priority = 0) {
    Gang(name, least, 0, [&] { Pods(name, count, profile, priority); });
  }

  const Plan& Make() {
    plan_ = cluster_.MakePlan(options_);
    EXPECT_EQ(PlanFault(plan_, cluster_.Snapshot()), "");
    return plan_;
  }
  int Placed(const std::string& prefix) const {
    return static_cast<int>(std::ranges::count_if(plan_.pods, [&](const PodOutcome& pod) {
      return pod.placed && pod.pod->meta.name.starts_with(prefix);
    }));
  }
  const PodOutcome& Outcome(const std::string& name) const {
    return *std::ranges::find_if(plan_.pods,
                                 [&](const auto& p) { return p.pod->meta.name == name; });
  }

  ClusterBuilder cluster_;
  PlanOptions options_;
  int pods_ = 0;
  Plan plan_;
};

TEST_F(GangsTest, DoesNotPartitionForIncompleteGang) {
  cluster_.Node("n", kA100, {"", ""});
  Gang("g", 3, 3, "7g.40gb");
  Pods("single", 2, "3g.20gb");
  Make();
  EXPECT_EQ(Placed("g"), 0);
  EXPECT_EQ(Placed("single"), 2);
  EXPECT_EQ(plan_.gpus_touched, 1);
  EXPECT_EQ(plan_.upper_bound, 2);
  EXPECT_TRUE(plan_.complete);
  const std::vector<Reason>& reasons = Outcome("g1").reasons;
  EXPECT_EQ(reasons[0].code, "GangNotWhole");
  EXPECT_EQ(reasons[0].message, "g: 2 of its pods find a node together, and 3 must");
  EXPECT_EQ(reasons[1].code, "NoRoomForGang");
  EXPECT_EQ(reasons[1].message, "node(s) have room, but not for enough pods of its gang");
  EXPECT_EQ(Outcome("g1").remedy_code, "WaitForPods") << "of its second pod";
}

// Gangs are ordered by their most urgent pod: by priority, then by age.
TEST_F(GangsTest, OrdersGangsByMostUrgentMember) {
  options_.now = Time(minutes(100));
  cluster_.Node("n", kA100, {"", ""});
  Gang("g", 2, 0, [&] {
    Pod("g0", "7g.40gb").meta.created = Time(minutes(99));
    Pod("g1", "7g.40gb").meta.created = Time(minutes(99));
  });
  Gang("h", 2, 0, [&] {
    Pod("h0", "7g.40gb").meta.created = Time(minutes(99));
    Pod("h1", "7g.40gb").meta.created = Time(minutes(98));
  });
  Make();
  EXPECT_EQ(Placed("h"), 2);
  options_.gangs.clear();
  cluster_ = {};
  pods_ = 0;
  cluster_.Node("n", kA100, {"", ""});
  Gang("g", 2, 0, [&] {
    Pod("g0", "7g.40gb");
    Pod("g1", "7g.40gb", 10);
  });
  Pods("single", 2, "7g.40gb", 5);
  Make();
  EXPECT_EQ(Placed("g"), 2);
}

TEST_F(GangsTest, CountsMembersPlacedBefore) {
  cluster_.Node("n", kA100, {""});
  Gang("g", 3, 2, [&] { Pods("g", 1, "7g.40gb"); });
  Make();
  EXPECT_EQ(Placed("g"), 1);
  options_.gangs[0].placed = 1;
  Make();
  EXPECT_EQ(Placed("g"), 0);
  EXPECT_EQ(plan_.gpus_touched, 0);
  EXPECT_EQ(Outcome("g0").reasons[0].code, "GangIncomplete");
  EXPECT_EQ(Outcome("g0").remedy,
            "complete its group: g: 2 of the 3 pods that are placed together are there");
}

TEST_F(GangsTest, GangWithProblemIsNotPlaced) {
  cluster_.Node("n", kA100, {""});
  Gang("g", 1, 1, "7g.40gb");
  options_.gangs[0].problem = "there is no PodGroup x/g";
  Make();
  EXPECT_EQ(Placed("g"), 0);
  EXPECT_EQ(Outcome("g0").reasons[0].message, "g: there is no PodGroup x/g");
}

// Pods beyond the lacking number are single pods: more important pods precede them.
TEST_F(GangsTest, ServesExtraPodsAsSinglePods) {
  cluster_.Node("n", kA100, {"", "", ""});
  Gang("g", 2, 3, "7g.40gb", 1);
  Pods("low", 1, "7g.40gb");
  Make();
  EXPECT_EQ(Placed("g"), 3);
  cluster_.Pod("old", {"7g.40gb"}, 1).meta.created = Time(minutes(1));
  Make();
  EXPECT_EQ(Placed("g"), 2);
  EXPECT_EQ(Placed("old"), 1);
  EXPECT_EQ(Outcome("g2").reasons[0].code, "TakenByPendingPods");
}

TEST_F(GangsTest, MoreSinglePodsOfSameRankPrecedeGang) {
  cluster_.Node("n", kA100, {"", ""});
  Gang("g", 2, 2, "7g.40gb");
  Pods("single", 4, "3g.20gb");
  Make();
  EXPECT_EQ(Placed("single"), 4);
  EXPECT_EQ(Placed("g"), 0);
  options_.now = Time(minutes(100));  // except for one that has waited long
  options_.gangs.clear();
  cluster_ = {};
  pods_ = 0;
  cluster_.Node("n", kA100, {"", ""});
  Gang("g", 2, 0, [&] {
    Pod("g0", "7g.40gb").meta.created = Time(minutes(1));
    Pod("g1", "7g.40gb").meta.created = Time(minutes(99));
  });
  for (int i = 0; i < 4; ++i) {
    Pod(fmt::format("single{}", i), "3g.20gb").meta.created = Time(minutes(99));
  }
  Make();
  EXPECT_EQ(Placed("g"), 2);
}

TEST_F(GangsTest, KeepsNoSlotsForWaitingGang) {
  options_.now = Time(minutes(100));
  cluster_.Node("n", kA100, {"", "7g.40gb@0:used"});
  Gang("g", 2, 0, [&] {
    for (const char* name : {"g0", "g1"}) Pod(name, "7g.40gb").meta.created = Time(minutes(1));
  });
  Pods("single", 1, "1g.5gb");
  Make();
  EXPECT_EQ(Placed("single"), 1);
  EXPECT_EQ(Placed("g"), 0);
}

TEST_F(GangsTest, MembersWithoutSlicesNeedCapacityToo) {
  cluster_.Node("n", kA100, {""});
  Gang("g", 2, 0, [&] {
    Pod("g0", "7g.40gb");
    cluster_.Pod("g1", {}, 0, "100");
    ++pods_;
  });
  Make();
  EXPECT_EQ(plan_.placed, 0);
  EXPECT_EQ(plan_.gpus_touched, 0);
  cluster_.PlainNode("m").allocatable["cpu"] = Quantity::FromValue(100);
  Make();
  EXPECT_EQ(plan_.placed, 2);
}

// A30: slices fit if and only if their sizes sum up to at most four.
struct SmallPod {
  int size = 1, priority = 0, gang = -1;
};
struct Small {
  int nodes = 1;
  std::vector<int> least;  // by gang
  std::vector<SmallPod> pods;
};

Small Draw(Random& random) {
  Small small;
  small.nodes = 1 + static_cast<int>(random.Below(3));
  const auto size = [&] { return 1 << random.Below(3); };
  const int gangs = 1 + static_cast<int>(random.Below(2));
  for (int gang = 0; gang < gangs; ++gang) {
    SmallPod pod{size(), static_cast<int>(random.Below(2)), gang};
    const int count = 2 + static_cast<int>(random.Below(2));
    for (int i = 0; i < count; ++i) {
      if (random.Chance(0.2)) pod.size = size();
      small.pods.push_back(pod);
    }
    small.least.push_back(count - static_cast<int>(random.Below(2)));
  }
  while (small.pods.size() < 7) {
    small.pods.push_back({size(), static_cast<int>(random.Below(2)), -1});
  }
  return small;
}

using Counts = std::pair<int, int>;  // of priority 1, of priority 0

bool AllWhole(const Small& small, const std::vector<bool>& placed) {
  std::vector<int> count(small.least.size());
  for (size_t i = 0; i < placed.size(); ++i) {
    if (placed[i] && small.pods[i].gang >= 0) ++count[small.pods[i].gang];
  }
  for (size_t g = 0; g < count.size(); ++g) {
    if (count[g] > 0 && count[g] < small.least[g]) return false;
  }
  return true;
}

Counts CountsOf(const Small& small, const std::vector<bool>& placed) {
  Counts counts;
  for (size_t i = 0; i < placed.size(); ++i) {
    if (placed[i]) ++(small.pods[i].priority > 0 ? counts.first : counts.second);
  }
  return counts;
}

struct Best {
  Counts counts;
  int most = 0;
};

void TryAll(const Small& small, size_t next, std::vector<int>& room, std::vector<bool>& placed,
            Best& best) {
  if (next == small.pods.size()) {
    if (!AllWhole(small, placed)) return;
    const Counts counts = CountsOf(small, placed);
    best.counts = std::max(best.counts, counts);
    best.most = std::max(best.most, counts.first + counts.second);
    return;
  }
  TryAll(small, next + 1, room, placed, best);
  placed[next] = true;
  for (int& left : room) {
    if (left < small.pods[next].size) continue;
    left -= small.pods[next].size;
    TryAll(small, next + 1, room, placed, best);
    left += small.pods[next].size;
  }
  placed[next] = false;
}

TEST(GangsProperty, ServesAsManyPodsAsExhaustiveSearch) {
  int worse = 0, proven = 0;
  constexpr int kRounds = 400;
  for (int seed = 0; seed < kRounds; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const Small small = Draw(random);
    ClusterBuilder cluster;
    for (int n = 0; n < small.nodes; ++n) cluster.Node(fmt::format("n{}", n), kA30, {""});
    PlanOptions options;
    for (size_t g = 0; g < small.least.size(); ++g) {
      options.gangs.push_back({fmt::format("g{}", g), small.least[g], 0, {}, ""});
    }
    const std::map<int, std::string> profiles = {{1, "1g.6gb"}, {2, "2g.12gb"}, {4, "4g.24gb"}};
    for (size_t i = 0; i < small.pods.size(); ++i) {
      const SmallPod& pod = small.pods[i];
      cluster.Pod(fmt::format("p{}", i), {profiles.at(pod.size)}, pod.priority);
      if (pod.gang >= 0) options.gangs[pod.gang].members.push_back(static_cast<int>(i));
    }
    const Plan plan = cluster.MakePlan(options);
    EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
    std::vector<bool> placed;
    for (const PodOutcome& pod : plan.pods) placed.push_back(pod.placed);
    EXPECT_TRUE(AllWhole(small, placed)) << "seed " << seed;
    Best best;
    std::vector<int> room(small.nodes, 4);
    std::vector<bool> none(small.pods.size());
    TryAll(small, 0, room, none, best);
    EXPECT_GE(plan.upper_bound, best.most) << "seed " << seed;
    const Counts counts = CountsOf(small, placed);
    EXPECT_LE(counts, best.counts) << "seed " << seed;
    if (plan.complete || small.least.size() == 1) {
      EXPECT_EQ(counts, best.counts) << "seed " << seed;
    }
    worse += counts < best.counts;
    proven += plan.complete;
  }
  EXPECT_LE(worse, kRounds / 20);  // of two gangs, the more urgent is served even if it is smaller
  EXPECT_GE(proven, kRounds / 4);
}

}  // namespace
}  // namespace nos::planning
