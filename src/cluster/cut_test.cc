#include "cluster/cut.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

namespace nos::cluster {
namespace {

const gpu::Catalogue& Models() { return gpu::Catalogue::Builtin(); }

// A node of A100-40GBs with these status layouts ("1g.5gb@6:free"), one for each GPU.
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
std::string Cut(const NodeInfo& node, const std::map<std::string, int64_t>& profiles) {
  const auto found = FindCut(node, Asking(profiles));
  EXPECT_EQ(found.has_value(), CanCut(node, Asking(profiles)));
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

TEST(FindCutTest, FreeInstancesServeFirst) {
  EXPECT_EQ(Cut(NodeWith({"", "3g.20gb@4:used,1g.5gb@1:free"}), {{"1g.5gb", 1}}), "1g.5gb@1 of 1");
}

TEST(FindCutTest, WhatFitsBesideAllComesBeforeWhatCostsOthersTheirs) {
  EXPECT_EQ(Cut(NodeWith({"4g.20gb@0:free,3g.20gb@4:used", "3g.20gb@4:used"}), {{"2g.10gb", 1}}),
            "2g.10gb@2 of 1")
      << "GPU 0 is fuller, but its free 4g would go";
  EXPECT_EQ(Cut(NodeWith({"4g.20gb@0:free,3g.20gb@4:used"}), {{"2g.10gb", 2}}),
            "2g.10gb@0 of 0, 2g.10gb@2 of 0");
}

TEST(FindCutTest, TheFullerGpuIsCut) {
  EXPECT_EQ(Cut(NodeWith({"", "4g.20gb@0:used"}), {{"3g.20gb", 1}}), "3g.20gb@4 of 1");
  EXPECT_EQ(Cut(NodeWith({"", ""}), {{"1g.5gb", 1}}), "1g.5gb@6 of 0");
}

TEST(FindCutTest, UsedOnesStay) {
  EXPECT_EQ(Cut(NodeWith({"1g.5gb@0:used"}), {{"7g.40gb", 1}}), "none");
  EXPECT_EQ(Cut(NodeWith({"1g.5gb@0:free"}), {{"7g.40gb", 1}}), "7g.40gb@0 of 0");
}

TEST(FindCutTest, SeveralKindsTogether) {
  EXPECT_EQ(Cut(NodeWith({""}), {{"3g.20gb", 1}, {"4g.20gb", 1}}),
            "3g.20gb@4 of 0, 4g.20gb@0 of 0");
  EXPECT_EQ(Cut(NodeWith({""}), {{"3g.20gb", 2}, {"1g.5gb", 1}}), "none");
  EXPECT_EQ(Cut(NodeWith({"", "4g.20gb@0:used"}), {{"3g.20gb", 2}, {"4g.20gb", 1}}),
            "3g.20gb@4 of 0, 3g.20gb@4 of 1, 4g.20gb@0 of 0");
  EXPECT_EQ(Cut(NodeWith({""}), {{"1g.5gb", 1'000'000'000}}), "none");
  EXPECT_EQ(Cut(NodeWith({""}), {{"no.such", 1}}), "none");
}

TEST(FindCutTest, APlanOfSomebodyElseGoesFirst) {
  const StringMap under_way = {{std::string(kSpecPlan), "3"}, {std::string(kStatusPlan), "2"}};
  EXPECT_FALSE(MayBeCut(NodeWith({""}, under_way)));
  EXPECT_EQ(Cut(NodeWith({""}, under_way), {{"1g.5gb", 1}}), "none");
  EXPECT_TRUE(
      MayBeCut(NodeWith({""}, {{std::string(kSpecPlan), "3"}, {std::string(kStatusPlan), "3"}})));
}

TEST(FindCutTest, OnlyFreeInstancesOfAGpuThatRests) {
  auto node = std::make_shared<Node>(*NodeWith({"1g.5gb@0:free"}).node);
  node->resting_gpus = {0};
  const auto snapshot = ClusterSnapshot::Build({node}, {}, Models());
  EXPECT_EQ(Cut(snapshot.node(0), {{"1g.5gb", 1}}), "1g.5gb@0 of 0");
  EXPECT_EQ(Cut(snapshot.node(0), {{"1g.5gb", 2}}), "none");
}

// Who was promised an instance has it in every picture, wherever others would be given one, and
// what is not there yet is allocatable to nobody else.
TEST(PromisedTest, CountsAsItWillBe) {
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
  EXPECT_TRUE(MayBeCut(snapshot.node(0))) << "its plan is ours";
  ASSERT_TRUE(snapshot.Unbind(*pod, "n").ok());
  EXPECT_EQ(snapshot.node(0).allocatable.Get(InternResource("nvidia.com/mig-1g.5gb")), 1);
  EXPECT_EQ(snapshot.node(0).gpus.gpus[0].instances.size(), 1u);
}

}  // namespace
}  // namespace nos::cluster
