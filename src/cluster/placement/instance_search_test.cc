#include "cluster/instance_search.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace nos::cluster {
namespace {

const gpu::Catalogue& Models() { return gpu::Catalogue::Builtin(); }

// A node of A100-40GB GPUs with these status layouts ("1g.5gb@6:free"), one for each GPU.
NodeInfo NodeWith(const std::vector<std::string>& layouts, StringMap more = {}) {
  auto node = std::make_shared<Node>();
  node->meta.name = "n";
  node->meta.labels = {{std::string(kPartitioningLabel), "mig"},
                       {std::string(kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(kCountLabel), std::to_string(layouts.size())}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    node->meta.annotations["nos.nebuly.com/status-layout-" + std::to_string(i)] = layouts[i];
  }
  for (auto& [key, value] : more) node->meta.annotations[key] = value;
  const auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
  return snapshot.node(0);
}

ResourceVector Asking(const std::map<std::string, int64_t>& profiles) {
  ResourceVector requests;
  for (const auto& [profile, count] : profiles) {
    requests.Set(InternResource("nvidia.com/mig-" + profile), count);
  }
  return requests;
}

// "1g.5gb@6 of 0, 3g.20gb@4 of 1", or "none".
std::string Found(const NodeInfo& node, const std::map<std::string, int64_t>& profiles) {
  const auto found = FindInstances(node, Asking(profiles));
  EXPECT_EQ(found.has_value(), CanProvide(node, Asking(profiles)));
  if (!found) return "none";
  std::vector<std::string> parts;
  for (const PromisedInstance& promised : *found) {
    const auto& model = *Models().FindByName("A100-40GB");
    parts.push_back(model.PlacementName(promised.placement) + " of " +
                    std::to_string(promised.gpu));
  }
  std::ranges::sort(parts);
  return Join(parts, ", ");
}

TEST(FindInstancesTest, UsesFreeInstancesFirst) {
  EXPECT_EQ(Found(NodeWith({"", "3g.20gb@4:used,1g.5gb@1:free"}), {{"1g.5gb", 1}}),
            "1g.5gb@1 of 1");
}

TEST(FindInstancesTest, PrefersNewInstancesThatKeepFreeOnes) {
  EXPECT_EQ(Found(NodeWith({"4g.20gb@0:free,3g.20gb@4:used", "3g.20gb@4:used"}), {{"2g.10gb", 1}}),
            "2g.10gb@2 of 1")
      << "GPU 0 is fuller, but its free 4g would go";
  EXPECT_EQ(Found(NodeWith({"4g.20gb@0:free,3g.20gb@4:used"}), {{"2g.10gb", 2}}),
            "2g.10gb@0 of 0, 2g.10gb@2 of 0");
}

TEST(FindInstancesTest, PrefersTheFullerGpu) {
  EXPECT_EQ(Found(NodeWith({"", "4g.20gb@0:used"}), {{"3g.20gb", 1}}), "3g.20gb@4 of 1");
  EXPECT_EQ(Found(NodeWith({"", ""}), {{"1g.5gb", 1}}), "1g.5gb@6 of 0");
}

TEST(FindInstancesTest, BreaksTiesByPreferredGpu) {
  const auto gpu_of = [](const NodeInfo& node, std::optional<int> preferred) {
    return FindInstances(node, Asking({{"3g.20gb", 1}}), preferred)->at(0).gpu;
  };
  const NodeInfo fuller = NodeWith({"", "4g.20gb@0:used"});
  EXPECT_EQ(gpu_of(fuller, {}), 1);
  EXPECT_EQ(gpu_of(fuller, 0), 0);
  EXPECT_EQ(gpu_of(fuller, 7), 1) << "there is none";
  EXPECT_EQ(gpu_of(NodeWith({"7g.40gb@0:used", "4g.20gb@0:used"}), 0), 1) << "no room";
  EXPECT_EQ(gpu_of(NodeWith({"", "3g.20gb@4:free"}), 0), 1) << "there is a free one";
}

TEST(FindInstancesTest, KeepsUsedInstances) {
  EXPECT_EQ(Found(NodeWith({"1g.5gb@0:used"}), {{"7g.40gb", 1}}), "none");
  EXPECT_EQ(Found(NodeWith({"1g.5gb@0:free"}), {{"7g.40gb", 1}}), "7g.40gb@0 of 0");
}

TEST(FindInstancesTest, PlacesSeveralKindsTogether) {
  EXPECT_EQ(Found(NodeWith({""}), {{"3g.20gb", 1}, {"4g.20gb", 1}}),
            "3g.20gb@4 of 0, 4g.20gb@0 of 0");
  EXPECT_EQ(Found(NodeWith({""}), {{"3g.20gb", 2}, {"1g.5gb", 1}}), "none");
  EXPECT_EQ(Found(NodeWith({"", "4g.20gb@0:used"}), {{"3g.20gb", 2}, {"4g.20gb", 1}}),
            "3g.20gb@4 of 0, 3g.20gb@4 of 1, 4g.20gb@0 of 0");
  EXPECT_EQ(Found(NodeWith({""}), {{"1g.5gb", 1'000'000'000}}), "none");
  EXPECT_EQ(Found(NodeWith({""}), {{"no.such", 1}}), "none");
}

TEST(FindInstancesTest, FindsFittingRequestsOnManyGpus) {
  using Asks = std::map<std::string, int64_t>;
  for (const int64_t n : {1, 2, 4, 8, 16}) {
    const NodeInfo node = NodeWith(std::vector<std::string>(static_cast<size_t>(n)));
    for (const Asks& asks :
         {Asks{{"3g.20gb", n}, {"1g.5gb", 4 * n}}, Asks{{"2g.10gb", 2 * n}, {"3g.20gb", n}},
          Asks{{"3g.20gb", n}, {"4g.20gb", n - 1}, {"2g.10gb", 2}},
          Asks{{"3g.20gb", n}, {"2g.10gb", n}, {"1g.5gb", 2 * n}},
          Asks{{"2g.10gb", 2 * n}, {"1g.5gb", 3 * n}},
          Asks{{"7g.40gb", n - 1}, {"3g.20gb", 1}, {"1g.10gb", 1}, {"1g.5gb", 2}}}) {
      EXPECT_NE(Found(node, asks), "none") << n << " GPUs, " << asks.begin()->first;
    }
    EXPECT_EQ(Found(node, {{"2g.10gb", 3 * n}, {"1g.5gb", n + 1}}), "none") << n;
    EXPECT_EQ(Found(node, {{"3g.20gb", n}, {"4g.20gb", n}, {"1g.5gb", 1}}), "none") << n;
    EXPECT_EQ(Found(node, {{"3g.20gb", n}, {"2g.10gb", 2 * n + 1}}), "none") << n;
  }
}

TEST(FindInstancesTest, UsesFreeInstancesFirstWhenTheRestHardlyFits) {
  EXPECT_EQ(Found(NodeWith({"", "3g.20gb@4:free"}), {{"3g.20gb", 2}, {"1g.5gb", 8}}),
            "1g.5gb@0 of 0, 1g.5gb@0 of 1, 1g.5gb@1 of 0, 1g.5gb@1 of 1, 1g.5gb@2 of 0, "
            "1g.5gb@2 of 1, 1g.5gb@3 of 0, 1g.5gb@3 of 1, 3g.20gb@4 of 0, 3g.20gb@4 of 1");
}

// Reference implementation: tries every placement on every GPU.
class BruteForce {
 public:
  BruteForce(const NodeInfo& node, const std::vector<std::string>& wanted) : wanted_(wanted) {
    for (const Gpu& gpu : node.gpus.gpus) {
      gpus_.push_back(&gpu);
      layouts_.push_back(gpu.UsedLayout());
    }
  }
  bool Fits() { return Place(0); }

 private:
  bool Place(size_t next) {
    if (next == wanted_.size()) return true;
    if (!seen_.emplace(next, layouts_).second) return false;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      const gpu::LayoutTable& table = gpus_[i]->model->layouts();
      for (size_t p = 0; p < table.placements().size(); ++p) {
        const gpu::Placement& placement = table.placements()[p];
        if (gpus_[i]->model->profile(placement.profile).name != wanted_[next]) continue;
        const bool there = std::ranges::find(gpus_[i]->instances, Instance{placement, false, ""}) !=
                           gpus_[i]->instances.end();
        const gpu::LayoutId before = layouts_[i];
        const gpu::LayoutId after = table.Add(before, static_cast<gpu::PlacementId>(p));
        if (after == gpu::LayoutTable::kIllegal || (gpus_[i]->fixed && !there)) continue;
        layouts_[i] = after;
        const bool fits = Place(next + 1);
        layouts_[i] = before;
        if (fits) return true;
      }
    }
    return false;
  }

  const std::vector<std::string>& wanted_;
  std::vector<const Gpu*> gpus_;
  std::vector<gpu::LayoutId> layouts_;
  std::set<std::pair<size_t, std::vector<gpu::LayoutId>>> seen_;
};

class RandomInstancesTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // "3g.20gb@4:used,1g.5gb@0:free"
  std::string RandomLayout(const gpu::Model& model) {
    const gpu::LayoutTable& table = model.layouts();
    std::vector<std::string> parts;
    gpu::LayoutId layout = gpu::LayoutTable::kEmpty;
    for (uint64_t tries = random_.Below(6); tries > 0; --tries) {
      const auto placement =
          static_cast<gpu::PlacementId>(random_.Below(table.placements().size()));
      if (table.Add(layout, placement) == gpu::LayoutTable::kIllegal) continue;
      layout = table.Add(layout, placement);
      parts.push_back(model.PlacementName(table.placements()[placement]) +
                      (random_.Below(2) == 0 ? ":used" : ":free"));
    }
    return Join(parts, ",");
  }
  NodeInfo RandomNode() {
    auto node = std::make_shared<Node>(*NodeWith({}).node);
    for (uint64_t i = 0; i <= random_.Below(2); ++i) {
      const std::string model = random_.Below(4) == 0 ? "A30" : "A100-40GB";
      const std::string gpu = std::to_string(i);
      node->meta.annotations["nos.nebuly.com/status-model-" + gpu] = model;
      node->meta.annotations["nos.nebuly.com/status-layout-" + gpu] =
          RandomLayout(*Models().FindByName(model));
      if (random_.Below(8) == 0) node->resting_gpus.insert(static_cast<int>(i));
    }
    const auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
    return snapshot.node(0);
  }
  std::map<std::string, int64_t> RandomAsks() {
    std::map<std::string, int64_t> asks;
    const std::vector<std::string> names{"1g.5gb",  "1g.5gb",  "1g.5gb",  "1g.10gb",
                                         "2g.10gb", "2g.10gb", "3g.20gb", "4g.20gb",
                                         "7g.40gb", "1g.6gb",  "2g.12gb"};
    for (uint64_t n = 1 + random_.Below(9); n > 0; --n) ++asks[names[random_.Below(names.size())]];
    return asks;
  }

  Random random_{GetParam()};
};

// The requests that remain after these instances are added beside the used ones; "illegal" if they
// cannot be added.
std::string LeftOf(const NodeInfo& node, std::map<std::string, int64_t> asks,
                   const std::vector<PromisedInstance>& promised) {
  for (const Gpu& gpu : node.gpus.gpus) {
    const gpu::LayoutTable& table = gpu.model->layouts();
    gpu::LayoutId layout = gpu.UsedLayout();
    for (const PromisedInstance& one : promised) {
      if (one.gpu != gpu.index) continue;
      layout = table.Add(layout, *table.Find(one.placement));
      if (layout == gpu::LayoutTable::kIllegal) return "illegal";
      const bool there = std::ranges::find(gpu.instances, Instance{one.placement, false, ""}) !=
                         gpu.instances.end();
      if (gpu.fixed && !there) return "illegal";
      --asks[gpu.model->profile(one.placement.profile).name];
    }
  }
  std::string left;
  for (const auto& [profile, count] : asks) left += count == 0 ? "" : profile + " ";
  return left;
}

TEST_P(RandomInstancesTest, FindsExactlyTheRequestsThatFit) {
  for (int i = 0; i < 150; ++i) {
    const NodeInfo node = RandomNode();
    const auto asks = RandomAsks();
    std::vector<std::string> wanted;
    for (const auto& [profile, count] : asks) {
      wanted.insert(wanted.end(), static_cast<size_t>(count), profile);
    }
    const auto found = FindInstances(node, Asking(asks));
    ASSERT_EQ(found.has_value(), BruteForce(node, wanted).Fits()) << Join(wanted, ",");
    ASSERT_EQ(found.has_value(), CanProvide(node, Asking(asks))) << Join(wanted, ",");
    EXPECT_EQ(found ? LeftOf(node, asks, *found) : "", "");
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomInstancesTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

TEST(InstanceFinderTest, CachesByCapacityOfTheGpus) {
  InstanceFinder finder(Asking({{"3g.20gb", 2}, {"1g.5gb", 8}}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(finder.Can(NodeWith({"", ""})));
    EXPECT_TRUE(finder.Can(NodeWith({"1g.5gb@3:free", ""})));
    EXPECT_FALSE(finder.Can(NodeWith({"1g.5gb@3:used", ""})));
    EXPECT_FALSE(finder.Can(NodeWith({"", "1g.5gb@3:used"})));
    EXPECT_TRUE(finder.Can(NodeWith({"", "1g.5gb@3:used", ""})));
  }
}

// A request for too many kinds of shares is refused without enumerating the mixtures.
TEST(FindInstancesTest, RefusesTooManyMixturesOfShares) {
  auto node = std::make_shared<Node>();
  node->meta.name = "n";
  node->meta.labels = {{std::string(kPartitioningLabel), "mps"},
                       {std::string(kCountLabel), "1"},
                       {std::string(kMemoryLabel), "81920"}};
  node->meta.annotations = {{"nos.nebuly.com/status-model-0", "MPS-79GB"},
                            {"nos.nebuly.com/status-layout-0", "10gb@0:used"}};
  const auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
  ResourceVector requests;
  for (int gib = 1; gib <= 3; ++gib) {
    requests.Set(InternResource("nvidia.com/gpu-" + std::to_string(gib) + "gb"), 2);
  }
  EXPECT_EQ(FindInstances(snapshot.node(0), requests)->size(), 6U);
  for (int gib = 1; gib <= 255; ++gib) {
    requests.Set(InternResource("nvidia.com/gpu-" + std::to_string(gib) + "gb"), 500);
  }
  EXPECT_FALSE(FindInstances(snapshot.node(0), requests));
  EXPECT_FALSE(CanProvide(snapshot.node(0), requests));
}

TEST(FindInstancesTest, WaitsForPendingPlanOfAnotherController) {
  const StringMap under_way = {{std::string(kSpecPlan), "3"}, {std::string(kStatusPlan), "2"}};
  EXPECT_FALSE(MayBePartitioned(NodeWith({""}, under_way)));
  EXPECT_EQ(Found(NodeWith({""}, under_way), {{"1g.5gb", 1}}), "none");
  EXPECT_TRUE(MayBePartitioned(
      NodeWith({""}, {{std::string(kSpecPlan), "3"}, {std::string(kStatusPlan), "3"}})));
}

TEST(FindInstancesTest, UsesOnlyFreeInstancesOfRestingGpus) {
  auto node = std::make_shared<Node>(*NodeWith({"1g.5gb@0:free"}).node);
  node->resting_gpus = {0};
  const auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
  EXPECT_EQ(Found(snapshot.node(0), {{"1g.5gb", 1}}), "1g.5gb@0 of 0");
  EXPECT_EQ(Found(snapshot.node(0), {{"1g.5gb", 2}}), "none");
}

// A nominated instance counts as used by its pod in every snapshot, even if it does not exist yet,
// and it is not allocatable to other pods.
TEST(PromisedTest, NominatedInstanceCountsAsUsedByItsPod) {
  NodeInfo info = NodeWith({"1g.5gb@0:free"});
  auto node = std::make_shared<Node>(*info.node);
  node->allocatable["nvidia.com/mig-1g.5gb"] = *Quantity::Parse("1");
  auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
  auto pod = std::make_shared<Pod>();
  pod->meta.name = "p";
  pod->meta.ns = "d";
  pod->containers.emplace_back();
  pod->containers[0].requests["nvidia.com/mig-3g.20gb"] = *Quantity::Parse("1");
  const auto& model = *Models().FindByName("A100-40GB");
  pod->promised = {{0, *model.ParsePlacement("3g.20gb@0")}};
  ASSERT_TRUE(snapshot.Bind(pod, "n").ok());
  const auto check = [&](const char* when) {
    const NodeInfo& now = snapshot.node(0);
    const auto of = [&](const char* profile) {
      return now.allocatable.Get(InternResource(std::string("nvidia.com/mig-") + profile));
    };
    ASSERT_EQ(now.gpus.gpus[0].instances.size(), 1u) << when;
    EXPECT_EQ(now.gpus.gpus[0].instances[0].placement, pod->promised[0].placement) << when;
    EXPECT_EQ(now.gpus.gpus[0].instances[0].pod, "d/p") << when;
    EXPECT_EQ(of("3g.20gb"), 1) << when;
    EXPECT_EQ(of("1g.5gb"), 0) << when << ": it gives way";
  };
  check("bound");
  snapshot.SetNode(node);
  check("the node is seen again");
  EXPECT_TRUE(MayBePartitioned(snapshot.node(0))) << "its plan is ours";
  ASSERT_TRUE(snapshot.Unbind(*pod, "n").ok());
  EXPECT_EQ(snapshot.node(0).allocatable.Get(InternResource("nvidia.com/mig-1g.5gb")), 1);
  EXPECT_EQ(snapshot.node(0).gpus.gpus[0].instances.size(), 1u);
}

}  // namespace
}  // namespace nos::cluster
