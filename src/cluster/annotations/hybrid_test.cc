// Hybrid nodes: each GPU has a sharing mode of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "cluster/device_interface.h"
#include "cluster/instance_search.h"
#include "cluster/snapshot.h"

namespace nos::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kUnshared = "H100-80GB+GPU+TIME-4", kShared = "MPS-79GB";

const gpu::Catalogue& Builtin() { return gpu::Catalogue::Builtin(); }
std::string N(std::string_view rest) { return std::string(kPrefix) + std::string(rest); }

// A GPU as its layout; `shared`: the layout is MPS, e.g. "10gb@0:used" of MPS-79GB.
struct GpuText {
  std::string layout;
  bool shared = false;
};

Node HybridNode(const std::vector<GpuText>& gpus, std::string_view unshared = kUnshared) {
  Node node;
  node.meta.name = "n";
  node.meta.labels = {{std::string(kPartitioningLabel), "hybrid"},
                      {std::string(kCountLabel), std::to_string(gpus.size())}};
  for (size_t i = 0; i < gpus.size(); ++i) {
    StringMap& to = node.meta.annotations;
    to[N("status-model-" + std::to_string(i))] = gpus[i].shared ? kShared : unshared;
    to[N("status-other-model-" + std::to_string(i))] = gpus[i].shared ? unshared : kShared;
    to[N("status-layout-" + std::to_string(i))] = gpus[i].layout;
  }
  return node;
}

std::shared_ptr<const Pod> Asking(const std::map<std::string, int64_t>& resources,
                                  std::vector<PromisedInstance> promised = {}) {
  auto pod = std::make_shared<Pod>();
  pod->meta.ns = "x";
  pod->meta.name = "p";
  pod->node_name = "n";
  pod->phase = "Pending";
  pod->promised = std::move(promised);
  Container& container = pod->containers.emplace_back();
  for (const auto& [name, count] : resources) {
    container.requests["nvidia.com/" + name] = Quantity::FromValue(count);
  }
  return pod;
}

NodeInfo Info(const Node& node, std::vector<std::shared_ptr<const Pod>> pods = {}) {
  return ClusterSnapshot::Build({std::make_shared<const Node>(node)}, pods, Builtin()).node(0);
}

std::string Text(const Gpu& gpu) {
  std::vector<std::string> parts = {gpu.model->name()};
  for (const Instance& each : gpu.instances) {
    parts.push_back(gpu.model->PlacementName(each.placement) + (each.used ? "*" : ""));
  }
  return Join(parts, " ");
}

std::vector<std::string> Texts(const NodeInfo& node) {
  std::vector<std::string> texts;
  for (const Gpu& gpu : node.gpus.gpus) texts.push_back(Text(gpu));
  return texts;
}

TEST(HybridTest, ReadsSharingModeOfEachGpu) {
  const Node node = HybridNode({{"1g.10gb@6:used,gpu@0:free"},
                                {"10gb@0:used", true},
                                {"shared@2:used,shared@0:free"},
                                {"gpu@0:used"}});
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  EXPECT_THAT(gpus.problems,
              ElementsAre("GPU 0: reported layout '1g.10gb@6:used,gpu@0:free': these instances may "
                          "not lie on one H100-80GB+GPU+TIME-4; the GPU is left alone"))
      << "of the first";
  EXPECT_TRUE(gpus.managed);
  EXPECT_TRUE(gpus.whole);
  ASSERT_EQ(gpus.gpus.size(), 3u);
  EXPECT_EQ(gpus.gpus[0].alternative->name(), kUnshared);
  EXPECT_EQ(gpus.gpus[1].alternative->name(), kShared);
  EXPECT_EQ(Text(gpus.gpus[1]), "H100-80GB+GPU+TIME-4 shared@0 shared@2*");
}

TEST(HybridTest, StatusSurvivesRoundTrip) {
  Node node = HybridNode({{"shared@0:used"}, {"10gb@0:free", true}, {""}});
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  ASSERT_THAT(gpus.problems, IsEmpty());
  node.meta.annotations.clear();
  EXPECT_FALSE(ReadNodeGpus(node, Builtin()).managed) << "no agent has reported what they may be";
  Apply(StatusPatch(node, gpus.gpus, "7", true), node.meta.annotations);
  EXPECT_EQ(ReadNodeGpus(node, Builtin()).gpus, gpus.gpus);
  node.meta.labels[std::string(kPartitioningLabel)] = "mig";
  Apply(StatusPatch(node, {}, ""), node.meta.annotations);
  EXPECT_THAT(node.meta.annotations, IsEmpty());
}

// On Ampere GPUs the MIG mode changes only with a GPU reset.
TEST(HybridTest, EmptyOtherModelMeansNoSwitch) {
  Node node = HybridNode({{""}});
  node.meta.annotations[N("status-model-0")] = "A100-40GB";
  node.meta.annotations[N("status-other-model-0")] = "";
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  EXPECT_THAT(gpus.problems, IsEmpty());
  ASSERT_EQ(gpus.gpus.size(), 1u);
  EXPECT_EQ(gpus.gpus[0].alternative, nullptr);
  EXPECT_FALSE(gpus.gpus[0].MaySwitch());
}

TEST(HybridTest, ReportsImpossibleModels) {
  Node node = HybridNode({{""}, {""}});
  node.meta.annotations[N("status-model-0")] = "H100-80GB+TIME-99";
  node.meta.annotations[N("status-other-model-1")] = "GPU-79GB+GPU";
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  EXPECT_THAT(gpus.problems,
              ElementsAre("GPU 0: its agent reports 'H100-80GB+TIME-99', which is no model of the "
                          "catalogue, no GPU-<GiB>GB+GPU+TIME-<n> and no MPS-<GiB>GB",
                          "GPU 1: it cannot be GPU-79GB+GPU in place of H100-80GB+GPU+TIME-4"));
  ASSERT_EQ(gpus.gpus.size(), 1u);
  EXPECT_EQ(gpus.gpus[0].alternative, nullptr);
}

TEST(HybridTest, SpecMaySwitchTheModel) {
  Node node = HybridNode({{""}, {"1g.10gb@0:free"}, {"", true}, {""}});
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  const gpu::Model& shares = *gpus.gpus[0].alternative;
  const gpu::Model& unshared = *gpus.gpus[0].model;
  const std::vector<TargetLayout> asked = {
      {0, &shares, {{*shares.FindProfile("10gb"), 0}, {*shares.FindProfile("20gb"), 1}}},
      {1, &unshared, {{*unshared.FindProfile("gpu"), 0}}},
      {2, &unshared, {{*unshared.FindProfile("3g.40gb"), 4}}},
      {3, &unshared, {}}};
  Apply(SpecPatch(node, asked, "8"), node.meta.annotations);
  const std::vector<TargetLayout> read = ReadSpec(node, gpus);
  ASSERT_EQ(read.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(read[i].model, asked[i].model);
    EXPECT_EQ(read[i].placements, asked[i].placements);
  }
  EXPECT_TRUE(RepairSpec(node, gpus).patch.empty());
  node.meta.annotations.erase(N("spec-layout-0"));
  EXPECT_EQ(ReadSpec(node, gpus)[0].model, &shares) << "by counts alone";
}

TEST(HybridTest, PodsHoldInstancesBeforeTheStatusShowsThem) {
  Node node = HybridNode({{"1g.10gb@0:used"}, {"1g.10gb@0:free"}});
  EXPECT_THAT(Texts(Info(node, {Asking({{"gpu-10gb", 2}})})),
              ElementsAre("H100-80GB+GPU+TIME-4 1g.10gb@0*", "MPS-79GB 10gb@0* 10gb@1*"));
  EXPECT_THAT(Texts(Info(node, {Asking({{"gpu", 1}})})),
              ElementsAre("H100-80GB+GPU+TIME-4 1g.10gb@0*", "H100-80GB+GPU+TIME-4 gpu@0*"));
  EXPECT_THAT(Texts(Info(node, {Asking({{"gpu.shared", 3}})})),
              ElementsAre("H100-80GB+GPU+TIME-4 1g.10gb@0*",
                          "H100-80GB+GPU+TIME-4 shared@0* shared@2* shared@4*"));
  EXPECT_THAT(Info(node, {Asking({{"gpu-10gb", 8}})}).gpus.problems,
              ElementsAre("pod x/p holds 8 of nvidia.com/gpu-10gb, but no GPU of the node shows or "
                          "has room for them all"));
}

TEST(HybridTest, AssumesUnreportedInstancesWhereTheSpecHasThem) {
  Node node = HybridNode({{""}, {""}});
  node.meta.annotations[N("spec-layout-1")] = "10gb@3";
  EXPECT_THAT(Texts(Info(node, {Asking({{"gpu-10gb", 1}})})),
              ElementsAre("H100-80GB+GPU+TIME-4", "MPS-79GB 10gb@3*"));
}

ResourceVector RequestsOf(const std::map<std::string, int64_t>& resources) {
  ResourceVector requests;
  for (const auto& [name, count] : resources) {
    requests.Set(InternResource("nvidia.com/" + name), count);
  }
  return requests;
}

// Reference implementation: tries each instance on every GPU, in the current model and, while the
// GPU is unused, in the other model.
class BruteForce {
 public:
  BruteForce(const NodeInfo& node, const std::vector<std::string>& wanted) : wanted_(wanted) {
    for (const Gpu& gpu : node.gpus.gpus) {
      gpus_.push_back(*gpu.Used());
      others_.push_back(gpu.MaySwitch() ? gpu.alternative : nullptr);
    }
  }
  bool Fits(size_t next = 0) {
    if (next == wanted_.size()) return true;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      const gpu::Occupancy before = gpus_[i];
      std::vector<gpu::Occupancy> ways = {before};
      if (others_[i] != nullptr && before.taken_slots() == 0) ways.emplace_back(*others_[i]);
      for (const gpu::Occupancy& way : ways) {
        if (TryOn(next, i, way)) return true;
      }
      gpus_[i] = before;
    }
    return false;
  }

 private:
  bool TryOn(size_t next, size_t i, const gpu::Occupancy& way) {
    const auto profile = way.model().FindProfile("nvidia.com/" + wanted_[next]);
    if (!profile) return false;
    for (int start = 0; start < 64; ++start) {
      gpu::Occupancy with = way;
      if (!with.Add({*profile, static_cast<uint8_t>(start)})) continue;
      gpus_[i] = with;
      if (Fits(next + 1)) return true;
      if (way.model().counted()) return false;  // shares of equal size are interchangeable
    }
    return false;
  }

  const std::vector<std::string>& wanted_;
  std::vector<gpu::Occupancy> gpus_;
  std::vector<const gpu::Model*> others_;
};

void CompareWithForce(std::string_view unshared, const std::vector<std::string>& layouts,
                      const std::vector<std::string>& kinds) {
  const std::vector<std::string> shares = {"", "20gb@0:free", "40gb@1:used",
                                           "70gb@0:used,5gb@2:free"};
  int fits = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::vector<GpuText> gpus;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      const bool shared = random.Chance(0.4);
      const auto& of = shared ? shares : layouts;
      gpus.push_back({of[random.Below(of.size())], shared});
    }
    const Node node = HybridNode(gpus, unshared);
    std::map<std::string, int64_t> asks;
    std::vector<std::string> wanted;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      wanted.push_back(kinds[random.Below(kinds.size())]);
      ++asks[wanted.back()];
    }
    const NodeInfo info = Info(node);
    const auto found = FindInstances(info, RequestsOf(asks));
    ASSERT_EQ(found.has_value(), BruteForce(info, wanted).Fits()) << Join(wanted, ",");
    ASSERT_EQ(found.has_value(), CanProvide(info, RequestsOf(asks))) << Join(wanted, ",");
    if (!found) continue;
    ++fits;
    // A pod bound with this nomination holds exactly the nominated instances.
    const NodeInfo after = Info(node, {Asking(asks, *found)});
    EXPECT_THAT(after.gpus.problems, IsEmpty());
    size_t held = 0;
    for (const Gpu& gpu : after.gpus.gpus) {
      held += static_cast<size_t>(std::ranges::count(gpu.instances, "x/p", &Instance::pod));
      EXPECT_TRUE(gpu.All().has_value());
    }
    EXPECT_EQ(held, wanted.size());
    for (const PromisedInstance& one : *found) {
      const Gpu& gpu = after.gpus.gpus[static_cast<size_t>(one.gpu)];
      EXPECT_EQ(std::ranges::count(gpu.instances, Instance{one.placement, true, "x/p"}), 1);
    }
    for (size_t i = 0; i < gpus.size(); ++i) {  // no used instance without a holder disappears
      for (const Instance& each : info.gpus.gpus[i].instances) {
        if (!each.used) continue;
        EXPECT_EQ(std::ranges::count(after.gpus.gpus[i].instances, each), 1);
      }
    }
  }
  EXPECT_GT(fits, 300);
  EXPECT_LT(fits, 1400);
}

TEST(HybridTest, FindsExactlyTheRequestsThatFit) {
  CompareWithForce(
      kUnshared,
      {"", "1g.10gb@0:used", "3g.40gb@4:used,1g.10gb@0:free", "gpu@0:free", "shared@0:used", ""},
      {"gpu", "gpu.shared", "mig-3g.40gb", "mig-1g.10gb", "gpu-30gb", "gpu-10gb"});
}

TEST(HybridTest, FindsPartsOfMigInstances) {
  CompareWithForce("H100-80GB+3g.40gb.mps2+GPU",
                   {"", "4g.40gb@0:used,3g.40gb@4:free", "3g.40gb.mps2@4:used,1g.10gb@0:free",
                    "3g.40gb.mps2@0:used,3g.40gb.mps2@1:free", "gpu@0:free", "3g.40gb@0:used"},
                   {"gpu", "mig-3g.40gb", "mig-3g.40gb.mps2", "mig-1g.10gb", "gpu-30gb"});
}

// Whole GPUs are instances on hybrid nodes only.
TEST(HybridTest, WholeGpusAreInstancesOnHybridNodesOnly) {
  Node node = HybridNode({{""}});
  const ResourceId whole = InternResource(kWholeGpuResource);
  EXPECT_TRUE(IsManagedOn(Info(node), whole));
  node.meta.labels[std::string(kPartitioningLabel)] = "mig";
  node.meta.annotations[N("status-model-0")] = "H100-80GB";
  EXPECT_FALSE(IsManagedOn(Info(node), whole));
  EXPECT_TRUE(IsManagedOn(Info(node), InternResource("nvidia.com/gpu.shared")));
  EXPECT_TRUE(CanProvide(Info(node), RequestsOf({{"gpu", 5}})))
      << "whole GPUs are no instances here";
  EXPECT_TRUE(CanProvide(Info(node), RequestsOf({{"gpu", 5}, {"mig-1g.10gb", 1}})));
  EXPECT_FALSE(CanProvide(Info(node), RequestsOf({{"gpu", 5}, {"mig-1g.10gb", 8}})));
}

// Claims decide about their instances.
TEST(HybridTest, NodesThatServeClaimsAreNotPartitioned) {
  Node node = HybridNode({{"gpu@0:free"}, {"3g.40gb@4:used"}}, "H100-80GB+GPU");
  ASSERT_TRUE(IsManaged(node));
  node.meta.labels[std::string(kInterfaceLabel)] = "device-plugin";
  EXPECT_TRUE(IsManaged(node));
  node.meta.labels[std::string(kInterfaceLabel)] = "dra";
  EXPECT_TRUE(ServesClaims(node));
  EXPECT_FALSE(IsManaged(node));
  EXPECT_TRUE(ReadNodeGpus(node, gpu::Catalogue::Builtin()).gpus.empty());
}

TEST(HybridTest, MigNodesHaveWholeGpusIfTheirAgentReportsThem) {
  Node node = HybridNode({{"gpu@0:free"}, {"3g.40gb@4:used"}}, "H100-80GB+GPU");
  node.meta.labels[std::string(kPartitioningLabel)] = "mig";
  for (const char* gpu : {"0", "1"}) node.meta.annotations[N("status-other-model-") + gpu] = "";
  EXPECT_EQ(SharingModeOf(node), SharingMode::kHybrid);
  EXPECT_TRUE(IsManagedOn(Info(node), InternResource(kWholeGpuResource)));
  EXPECT_THAT(Texts(Info(node)), ElementsAre("H100-80GB+GPU gpu@0", "H100-80GB+GPU 3g.40gb@4*"));
  EXPECT_TRUE(CanProvide(Info(node), RequestsOf({{"gpu", 1}, {"mig-3g.40gb", 1}})));
  EXPECT_FALSE(CanProvide(Info(node), RequestsOf({{"gpu", 2}})));
}

}  // namespace
}  // namespace nos::cluster
