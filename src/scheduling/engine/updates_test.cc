// Checks each plugin's declared dependences of verdicts and scores, and its incremental updates.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/random.h"
#include "scheduling/registry.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;

constexpr int kNodes = 7;

std::string Pick(Random& random, const std::vector<std::string>& from) {
  return from[random.Below(from.size())];
}

cluster::LabelSelector SelectorOf(const std::string& app) { return {{{"app", app}}, {}}; }

cluster::PodAffinityTerm TermOf(Random& random) {
  cluster::PodAffinityTerm term;
  term.selector = SelectorOf(Pick(random, {"a", "b"}));
  term.topology_key = Pick(random, {"zone", "kubernetes.io/hostname"});
  return term;
}

Pod RandomPod(Random& random, const std::string& name) {
  Pod pod = testing::PodOf(name);
  const auto sometimes = [&] { return random.Below(4) == 0; };
  pod.meta.labels["app"] = Pick(random, {"a", "b"});
  if (!sometimes()) {
    pod.containers[0].requests =
        testing::Resources({{"cpu", Pick(random, {"0", "1", "3"})}, {"memory", "1Gi"}});
  }
  if (sometimes()) pod.containers[0].requests["x.com/d"] = Quantity::FromValue(1);
  if (sometimes()) pod.containers[0].host_ports = {{random.Below(2) == 0 ? 80 : 81, "", "TCP"}};
  pod.containers[0].image = Pick(random, {"one", "two", "three"});
  if (sometimes()) pod.node_selector = {{"zone", "z1"}};
  if (sometimes()) pod.tolerations = {{"t", "Exists", "", ""}};
  if (sometimes()) {
    pod.node_affinity.emplace().preferred = {{5, {{{"zone", "In", {"z0"}}}, {}}}};
  }
  if (sometimes()) pod.pod_affinity.required.push_back(TermOf(random));
  if (sometimes()) pod.pod_affinity.preferred.push_back({10, TermOf(random)});
  if (sometimes()) pod.pod_anti_affinity.required.push_back(TermOf(random));
  if (sometimes()) pod.pod_anti_affinity.preferred.push_back({10, TermOf(random)});
  if (sometimes()) {
    cluster::TopologySpreadConstraint spread;
    spread.topology_key = Pick(random, {"zone", "kubernetes.io/hostname"});
    spread.when_unsatisfiable = Pick(random, {"DoNotSchedule", "ScheduleAnyway"});
    spread.selector = SelectorOf(pod.meta.labels["app"]);
    pod.spread.push_back(spread);
  }
  return pod;
}

ClusterSnapshot RandomCluster(Random& random) {
  std::vector<cluster::Node> nodes;
  for (int i = 0; i < kNodes; ++i) {
    auto node = testing::NodeOf("n" + std::to_string(i),
                                {{"cpu", "8"}, {"memory", "16Gi"}, {"x.com/d", "2"}});
    node.meta.labels["kubernetes.io/hostname"] = node.meta.name;
    if (i != 0) node.meta.labels["zone"] = "z" + std::to_string(i % 3);
    if (random.Below(4) == 0) node.taints.push_back({"t", "", "NoSchedule"});
    if (random.Below(4) == 0) node.taints.push_back({"u", "", "PreferNoSchedule"});
    node.unschedulable = random.Below(8) == 0;
    node.images = {{cluster::ImageId("one:latest"), int64_t{500} << 20}};
    nodes.push_back(std::move(node));
  }
  return testing::Snap(nodes);
}

struct Touched {
  std::string node;
  std::set<std::pair<std::string, std::string>> domains;

  bool Has(const NodeInfo& info) const {
    if (info.node->meta.name == node) return true;
    for (const auto& [key, value] : domains) {
      const auto label = info.node->meta.labels.find(key);
      if (label != info.node->meta.labels.end() && label->second == value) return true;
    }
    return false;
  }
};

struct Said {
  std::string verdict;
  int64_t score = 0;
  friend bool operator==(const Said&, const Said&) = default;
};

// One plugin's view of one pending pod, updated incrementally.
class Follower {
 public:
  Follower(const Plugin& plugin, Pod pod, const ClusterSnapshot& snapshot)
      : pod_(std::move(pod)),
        pre_(dynamic_cast<const PreFilterPlugin*>(&plugin)),
        filter_(dynamic_cast<const FilterPlugin*>(&plugin)),
        score_(dynamic_cast<const ScorePlugin*>(&plugin)) {
    Start(snapshot);
  }

  void Start(const ClusterSnapshot& snapshot) {
    state_ = Fresh(snapshot, skip_, scores_);
    said_ = Say(snapshot, state_);
  }

  void Change(const ClusterSnapshot& snapshot, const Pod& other, bool came, const NodeInfo& node) {
    Touched touched{node.node->meta.name, {}};
    const auto touch = [&](std::string_view key, std::string_view value) {
      touched.domains.emplace(key, value);
    };
    const bool scores_update =
        score_ != nullptr && score_->ScoreDependence() == DependsOn::kCluster;
    const bool followed =
        (pre_ == nullptr || pre_->Update(pod_, other, came, node, state_, touch)) &&
        (!scores_update || score_->UpdateScore(pod_, other, came, node, state_, touch));
    if (!followed) return Start(snapshot);
    bool skip = false, scores = false;
    const auto fresh = Say(snapshot, Fresh(snapshot, skip, scores));
    const auto now = Say(snapshot, state_);
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(now[i].verdict, fresh[i].verdict);
      // If a fresh plugin does not score, all nodes must score equally.
      EXPECT_EQ(now[i].score, scores == scores_ ? fresh[i].score : now[0].score);
    }
    EXPECT_TRUE(scores_ || !scores);
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] == said_[i]) continue;
      EXPECT_FALSE(DependsOnNodesOnly());
      EXPECT_TRUE(touched.Has(snapshot.node(i)))
          << said_[i].verdict << said_[i].score << " -> " << now[i].verdict << now[i].score;
    }
    said_ = now;
  }

 private:
  bool DependsOnNodesOnly() const {
    return (filter_ == nullptr || filter_->Dependence() == DependsOn::kNodeObject) &&
           (score_ == nullptr || score_->ScoreDependence() == DependsOn::kNodeObject);
  }
  CycleState Fresh(const ClusterSnapshot& snapshot, bool& skip, bool& scores) const {
    CycleState state;
    skip = pre_ != nullptr && pre_->PreFilter(pod_, snapshot, state).skip;
    std::vector<const NodeInfo*> nodes;
    for (size_t i = 0; i < snapshot.size(); ++i) nodes.push_back(&snapshot.node(i));
    scores = score_ != nullptr && score_->PreScore(pod_, snapshot, nodes, state);
    return state;
  }
  std::vector<Said> Say(const ClusterSnapshot& snapshot, const CycleState& state) const {
    std::vector<Said> all;
    for (size_t i = 0; i < snapshot.size(); ++i) {
      Said& said = all.emplace_back();
      if (filter_ != nullptr) {
        const Verdict verdict = filter_->Filter(state, pod_, snapshot.node(i));
        said.verdict = verdict.message;
        EXPECT_TRUE(verdict.fits() || (!skip_ && filter_->Concerns(pod_))) << verdict.message;
      }
      if (scores_) said.score = score_->Score(state, pod_, snapshot.node(i));
    }
    return all;
  }

  Pod pod_;
  const PreFilterPlugin* pre_;
  const FilterPlugin* filter_;
  const ScorePlugin* score_;
  CycleState state_;
  bool skip_ = false, scores_ = false;
  std::vector<Said> said_;  // per node
};

class UpdatesTest : public ::testing::TestWithParam<RegisteredPlugin> {};

TEST_P(UpdatesTest, IncrementalUpdatesEqualRecomputation) {
  std::vector<std::string> problems;
  const auto plugin = GetParam().make(ConfigValue(nullptr, "", problems), {});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    ClusterSnapshot snapshot = RandomCluster(random);
    std::vector<std::shared_ptr<const Pod>> running;
    std::vector<Follower> followers;
    for (int i = 0; i < 6; ++i) {
      followers.emplace_back(*plugin, RandomPod(random, "w" + std::to_string(i)), snapshot);
    }
    for (int step = 0; step < 40; ++step) {
      const bool comes = running.empty() || random.Below(3) != 0;
      if (comes) {
        Pod pod = RandomPod(random, "p" + std::to_string(step));
        pod.node_name = "n" + std::to_string(random.Below(kNodes));
        running.push_back(std::make_shared<const Pod>(std::move(pod)));
      } else {
        std::swap(running[random.Below(running.size())], running.back());
      }
      const auto other = running.back();
      ASSERT_TRUE((comes ? snapshot.Bind(other, other->node_name)
                         : snapshot.Unbind(*other, other->node_name))
                      .ok());
      for (Follower& follower : followers) {
        follower.Change(snapshot, *other, comes, *snapshot.Find(other->node_name));
      }
      if (!comes) running.pop_back();
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plugins, UpdatesTest, ::testing::ValuesIn(RegisteredPlugins()),
                         [](const auto& plugin) { return std::string(plugin.param.name); });

TEST(RegistryTest, RegisteredNamesEqualPluginNames) {
  std::vector<std::string> problems;
  for (const RegisteredPlugin& plugin : RegisteredPlugins()) {
    const auto made = plugin.make(ConfigValue(nullptr, "", problems), {});
    EXPECT_EQ(made->Name(), plugin.name);
    EXPECT_EQ(plugin.weight != 0, dynamic_cast<const ScorePlugin*>(made.get()) != nullptr);
  }
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace nos::scheduling
