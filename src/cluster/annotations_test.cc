#include "cluster/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/random.h"
#include "cluster/annotations/arrange.h"

namespace nos::cluster {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

const gpu::Catalogue& Builtin() { return gpu::Catalogue::Builtin(); }
const gpu::Model& A100() { return *Builtin().FindByName("A100-40GB"); }

std::string N(std::string_view rest) { return std::string(kPrefix) + std::string(rest); }

Node MigNode(int gpus, StringMap annotations = {}, std::string product = "NVIDIA-A100-SXM4-40GB") {
  Node node;
  node.meta.name = "n1";
  node.meta.labels = {{std::string(kPartitioningLabel), "mig"},
                      {std::string(kCountLabel), std::to_string(gpus)},
                      {std::string(kProductLabel), std::move(product)}};
  node.meta.annotations = std::move(annotations);
  return node;
}

std::string Text(const Gpu& gpu) {
  std::string text = std::to_string(gpu.index) + ":";
  for (const Instance& instance : gpu.instances) {
    text += " " + gpu.model->PlacementName(instance.placement) + (instance.used ? "!" : "");
  }
  return text;
}

std::vector<std::string> Texts(const NodeGpus& gpus) {
  std::vector<std::string> texts;
  texts.reserve(gpus.gpus.size());
  for (const Gpu& gpu : gpus.gpus) texts.push_back(Text(gpu));
  return texts;
}

TEST(ReadNodeGpusTest, ExactLayouts) {
  const NodeGpus gpus =
      ReadNodeGpus(MigNode(2, {{N("status-layout-0"), "3g.20gb@4:used,1g.5gb@0:free"},
                               {N("status-gpu-0-3g.20gb-used"), "1"},
                               {N("status-gpu-0-1g.5gb-free"), "1"},
                               {N("status-layout-1"), ""},
                               {N("status-partitioning-plan"), "7"}}),
                   Builtin());
  EXPECT_TRUE(gpus.managed);
  EXPECT_THAT(Texts(gpus), ElementsAre("0: 1g.5gb@0 3g.20gb@4!", "1:"));
  EXPECT_THAT(gpus.problems, IsEmpty());
  EXPECT_FALSE(gpus.gpus[0].assumed_starts);
  EXPECT_TRUE(gpus.gpus[1].reported);
  EXPECT_EQ(std::popcount(A100().layouts().Members(gpus.gpus[0].All()->layout())), 2);
  EXPECT_EQ(std::popcount(A100().layouts().Members(gpus.gpus[0].UsedLayout())), 1);
}

TEST(ReadNodeGpusTest, AssumesLegalStartsForCountsOnly) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(1, {{N("status-gpu-0-3g.20gb-used"), "1"},
                                                 {N("status-gpu-0-1g.5gb-free"), "2"},
                                                 {N("status-gpu-0-1g.5gb-used"), "1"},
                                                 {N("status-gpu-0-2g.10gb-used"), "0"}}),
                                     Builtin());
  ASSERT_THAT(gpus.problems, IsEmpty());
  ASSERT_EQ(gpus.gpus.size(), 1u);
  EXPECT_TRUE(gpus.gpus[0].assumed_starts);
  ASSERT_TRUE(gpus.gpus[0].All());
  EXPECT_EQ(std::popcount(A100().layouts().Members(gpus.gpus[0].All()->layout())), 4);
  EXPECT_EQ(std::popcount(A100().layouts().Members(gpus.gpus[0].UsedLayout())), 2);
}

TEST(ReadNodeGpusTest, ExcludesOnlyTheGpuWithImpossibleCounts) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(3, {{N("status-gpu-0-7g.40gb-free"), "1"},
                                                 {N("status-gpu-0-1g.5gb-free"), "1"},
                                                 {N("status-gpu-1-9g.99gb-used"), "1"},
                                                 {N("status-gpu-2-7g.40gb-used"), "1"}}),
                                     Builtin());
  EXPECT_THAT(Texts(gpus), ElementsAre("2: 7g.40gb@0!"));
  EXPECT_THAT(
      gpus.problems,
      ElementsAre("GPU 0: no layout of A100-40GB has the reported instances; the GPU is left alone",
                  "GPU 1: A100-40GB has no profile '9g.99gb'; the GPU is left alone"));
}

// Counts and layout disagree: either one may omit an instance that is in use.
TEST(ReadNodeGpusTest, ExcludesGpuWithIllegalOrContradictedLayout) {
  const NodeGpus gpus =
      ReadNodeGpus(MigNode(5, {{N("status-layout-0"), "2g.10gb@0:free"},
                               {N("status-gpu-0-1g.5gb-used"), "1"},
                               {N("status-layout-1"), "7g.40gb@0:free,1g.5gb@0:used"},
                               {N("status-gpu-1-3g.20gb-used"), "1"},
                               {N("status-layout-2"), "1g.5gb@7:free"},
                               {N("status-layout-3"), "3g.20gb@0:usd"},
                               {N("status-gpu-3-3g.20gb-free"), "1"},
                               {N("status-layout-4"), "3g.20gb@0:used"}}),
                   Builtin());
  EXPECT_THAT(Texts(gpus), ElementsAre("4: 3g.20gb@0!"));
  EXPECT_THAT(gpus.problems,
              ElementsAre("GPU 0: the reported counts contradict the reported layout; the GPU is "
                          "left alone",
                          "GPU 1: reported layout '7g.40gb@0:free,1g.5gb@0:used': these instances "
                          "may not lie on one A100-40GB; the GPU is left alone",
                          "GPU 2: reported layout '1g.5gb@7:free': placement \"1g.5gb@7\" on "
                          "A100-40GB: the profile cannot start there; the GPU is left alone",
                          "GPU 3: reported layout '3g.20gb@0:usd': 'usd' is neither free nor used; "
                          "the GPU is left alone"));
}

// An instance without a state may be in use.
TEST(ReadNodeGpusTest, ExcludesGpuWithInstanceWithoutState) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(2, {{N("status-layout-0"), "1g.5gb@6:free,3g.20gb@0"},
                                                 {N("status-layout-1"), "3g.20gb@0:"}}),
                                     Builtin());
  EXPECT_THAT(gpus.gpus, IsEmpty());
  EXPECT_THAT(gpus.problems,
              ElementsAre("GPU 0: reported layout '1g.5gb@6:free,3g.20gb@0': an instance has no "
                          "state, free or used; the GPU is left alone",
                          "GPU 1: reported layout '3g.20gb@0:': '' is neither free nor used; the "
                          "GPU is left alone"));
}

// A report that is readable only in part may omit an instance that is in use.
TEST(ReadNodeGpusTest, ExcludesGpuWithUnreadableAnnotation) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(6, {{N("status-gpu-0-3g.20gb-used"), "two"},
                                                 {N("status-gpu-1-3g.20gb-used"), "1001"},
                                                 {N("status-gpu-2-3g.20gb-in-use"), "2"},
                                                 {N("status-gpu-3-3g.20gb-used"), "two"},
                                                 {N("status-gpu-3-1g.5gb-free"), "1"},
                                                 {N("status-layout-4"), "3g.20gb@0:free"},
                                                 {N("status-gpu-4-3g.20gb"), "1"}}),
                                     Builtin());
  EXPECT_THAT(Texts(gpus), ElementsAre("5:"));
  EXPECT_THAT(
      gpus.problems,
      IsSupersetOf({"annotation nos.nebuly.com/status-gpu-0-3g.20gb-used: 'two' is not a count "
                    "from 0 to 1000",
                    "annotation nos.nebuly.com/status-gpu-2-3g.20gb-in-use: the key is malformed",
                    "GPU 0: a part of its report cannot be read; the GPU is left alone"}));
}

TEST(ReadNodeGpusTest, StrayAnnotationExcludesAllGpusWithoutExactLayout) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(3, {{N("status-gpu-O-3g.20gb-used"), "1"},
                                                 {N("status-layout-1"), "3g.20gb@0:used"},
                                                 {N("status-gpu-2-1g.5gb-free"), "1"}}),
                                     Builtin());
  EXPECT_THAT(Texts(gpus), ElementsAre("1: 3g.20gb@0!"));
  EXPECT_THAT(
      gpus.problems,
      Contains("GPU 2: an annotation that cannot be read may be about it; the GPU is left alone"));
}

TEST(ReadNodeGpusTest, GpusMissingFromTheStatusAreEmpty) {
  const NodeGpus second =
      ReadNodeGpus(MigNode(2, {{N("status-gpu-1-7g.40gb-free"), "1"}}), Builtin());
  EXPECT_THAT(Texts(second), ElementsAre("0:", "1: 7g.40gb@0"));
  EXPECT_FALSE(second.gpus[0].reported);
  EXPECT_TRUE(second.gpus[1].reported);
  EXPECT_THAT(Texts(ReadNodeGpus(MigNode(3), Builtin())), ElementsAre("0:", "1:", "2:"));
  EXPECT_THAT(Texts(ReadNodeGpus(MigNode(1, {{N("status-layout-4"), ""}}), Builtin())),
              ElementsAre("0:", "4:"));
}

TEST(ReadNodeGpusTest, ReadsSeveralModelsOnOneNode) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(3, {{N("status-model-1"), "A30"},
                                                 {N("status-layout-1"), "4g.24gb@0:used"},
                                                 {N("status-model-2"), "GeForce"}}),
                                     Builtin());
  ASSERT_EQ(gpus.gpus.size(), 2u);
  EXPECT_EQ(gpus.gpus[0].model->name(), "A100-40GB");
  EXPECT_EQ(gpus.gpus[1].model->name(), "A30");
  EXPECT_EQ(Text(gpus.gpus[1]), "1: 4g.24gb@0!");
  EXPECT_THAT(gpus.problems, ElementsAre("GPU 2: its model 'GeForce' is not in the catalogue of "
                                         "MIG GPUs; add it to the catalogue file"));
}

TEST(ReadNodeGpusTest, ReportsInvalidLabelsAsProblems) {
  EXPECT_THAT(
      ReadNodeGpus(MigNode(2, {}, "Tesla-T4"), Builtin()).problems,
      ElementsAre(
          "label nvidia.com/gpu.product: 'Tesla-T4' is not in the catalogue of MIG GPUs; add it to "
          "the catalogue file, or take label nos.nebuly.com/gpu-partitioning off the node"));
  Node node = MigNode(2);
  node.meta.labels.erase(std::string(kProductLabel));
  EXPECT_THAT(ReadNodeGpus(node, Builtin()).problems,
              ElementsAre("label nvidia.com/gpu.product is missing, so the GPU model is not known: "
                          "is GPU feature discovery running on this node?"));
  node = MigNode(1000000);
  EXPECT_THAT(
      ReadNodeGpus(node, Builtin()).problems,
      ElementsAre("label nvidia.com/gpu.count: '1000000' is not a number of GPUs up to 64"));
  node.meta.labels.erase(std::string(kCountLabel));
  EXPECT_THAT(ReadNodeGpus(node, Builtin()).problems,
              ElementsAre("label nvidia.com/gpu.count is missing and no agent has reported GPUs: "
                          "is GPU feature discovery running on this node?"));
}

TEST(ReadNodeGpusTest, IgnoresAnnotationsOfImpossibleGpuIndexes) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(1, {{N("status-gpu-99-1g.5gb-free"), "1"},
                                                 {N("status-gpu-99-1g.5gb-in-use"), "1"},
                                                 {N("status-weather"), "fine"}}),
                                     Builtin());
  EXPECT_EQ(gpus.problems.size(), 2u);
  EXPECT_THAT(Texts(gpus), ElementsAre("0:"));
}

TEST(ReadNodeGpusTest, ReadsOnlyNodesThatOptedIn) {
  Node node = MigNode(1, {{N("status-layout-0"), "7g.40gb@0:used"}});
  node.meta.labels[std::string(kPartitioningLabel)] = "something";
  EXPECT_FALSE(ReadNodeGpus(node, Builtin()).managed);
  EXPECT_THAT(ReadNodeGpus(node, Builtin()).gpus, IsEmpty());
  node.meta.labels["n8s.nebuly.ai/auto-mig-enabled"] = "true";
  EXPECT_FALSE(ReadNodeGpus(node, Builtin()).managed);
  node.meta.labels.erase(std::string(kPartitioningLabel));
  EXPECT_TRUE(ReadNodeGpus(node, Builtin()).managed);
}

TEST(ReadNodeGpusTest, ReadsOldPrefixAsAlias) {
  const Node node = MigNode(2, {{"n8s.nebuly.ai/status-gpu-0-7g.40gb-used", "1"},
                                {"n8s.nebuly.ai/status-gpu-1-7g.40gb-used", "1"},
                                {N("status-gpu-1-7g.40gb-free"), "1"},
                                {"n8s.nebuly.ai/spec-gpu-0-7g.40gb", "1"},
                                {"n8s.nebuly.ai/spec-partitioning-plan", "12"}});
  const NodeGpus gpus = ReadNodeGpus(node, Builtin());
  EXPECT_THAT(Texts(gpus), ElementsAre("0: 7g.40gb@0!", "1: 7g.40gb@0"));
  EXPECT_EQ(ReadSpec(node, gpus).size(), 1u);
  EXPECT_EQ(SpecPlan(node), "12");
  EXPECT_EQ(StatusPlan(node), "");
}

TEST(ReadNodeGpusTest, AcceptsPlanIdsUpToTheMaximum) {
  const auto plan = [](const std::string& text) {
    return SpecPlan(MigNode(1, {{N("spec-partitioning-plan"), text}}));
  };
  EXPECT_EQ(plan("0"), "0");
  EXPECT_EQ(plan("9007199254740992"), "9007199254740992");
  EXPECT_EQ(plan(std::string(100'000, '0') + "7"), "7") << "what is remembered is short";
  for (const char* text : {"9007199254740993", "9223372036854775807", "-1", "7 ", "seven", ""}) {
    EXPECT_EQ(plan(text), "") << text;
  }
}

TEST(ReadNodeGpusTest, ShortensLongQuotesInProblems) {
  const std::string book(200'000, 'x');
  const NodeGpus gpus = ReadNodeGpus(MigNode(4, {{N("status-layout-0"), book},
                                                 {N("status-layout-1"), "7g.40gb@0:" + book},
                                                 {N("status-gpu-2-7g.40gb-free"), book},
                                                 {N("status-model-3"), book}}),
                                     Builtin());
  EXPECT_EQ(gpus.problems.size(), 5u);
  for (const std::string& problem : gpus.problems) EXPECT_LE(problem.size(), 300u);
}

TEST(ReadNodeGpusTest, ReadsAliasesStatesAndSignsInProfileNames) {
  const NodeGpus gpus = ReadNodeGpus(MigNode(2, {{N("status-gpu-0-1g.5gb.me-free"), "1"},
                                                 {N("status-gpu-0-1g.5gb-Unknown"), "1"},
                                                 {N("status-layout-1"), "1g.5gb+me@0:unknown"}}),
                                     Builtin());
  ASSERT_THAT(gpus.problems, IsEmpty());
  ASSERT_EQ(gpus.gpus.size(), 2u);
  EXPECT_EQ(std::popcount(A100().layouts().Members(gpus.gpus[0].UsedLayout())), 1);
  EXPECT_EQ(Text(gpus.gpus[1]), "1: 1g.5gb+me@0!");
  const NodeGpus older = ReadNodeGpus(
      MigNode(1, {{N("status-gpu-0-7g.79gb-free"), "1"}}, "NVIDIA-A100-SXM4-80GB"), Builtin());
  EXPECT_THAT(Texts(older), ElementsAre("0: 7g.80gb@0"));
}

TEST(ReadSpecTest, CountsKeepExistingInstances) {
  const Node node = MigNode(1, {{N("status-layout-0"), "1g.5gb@6:used,1g.5gb@0:free"},
                                {N("spec-gpu-0-1g.5gb"), "1"},
                                {N("spec-gpu-0-3g.20gb"), "1"}});
  const auto spec = ReadSpec(node, ReadNodeGpus(node, Builtin()));
  ASSERT_EQ(spec.size(), 1u);
  Gpu wanted{.index = 0, .model = spec[0].model};
  for (const auto& placement : spec[0].placements)
    wanted.instances.push_back({placement, false, ""});
  EXPECT_EQ(Text(wanted), "0: 1g.5gb@6 3g.20gb@0");
}

TEST(ReadSpecTest, IgnoresDamagedOrContradictorySpecs) {
  const Node node = MigNode(5, {{N("spec-layout-0"), "3g.20gb@4"},
                                {N("spec-gpu-0-3g.20gb"), "1"},
                                {N("spec-layout-1"), "3g.20gb@3"},
                                {N("spec-layout-2"), ""},
                                {N("spec-layout-3"), "3g.20gb@4"},
                                {N("spec-gpu-3-7g.40gb"), "1"},
                                {N("spec-layout-4"), "nonsense"},
                                {N("spec-gpu-4-7g.40gb"), "1"}});
  const auto spec = ReadSpec(node, ReadNodeGpus(node, Builtin()));
  ASSERT_EQ(spec.size(), 2u);
  EXPECT_EQ(spec[0].model->PlacementName(spec[0].placements.at(0)), "3g.20gb@4");
  EXPECT_EQ(spec[1].index, 2);
  EXPECT_THAT(spec[1].placements, IsEmpty());
}

TEST(RepairSpecTest, RemovesOnlyUnusableAnnotations) {
  const Node node = MigNode(5, {{N("spec-layout-0"), "3g.20gb@4"},
                                {N("spec-gpu-0-3g.20gb"), "1"},
                                {N("spec-layout-1"), "3g.20gb@3"},
                                {N("spec-gpu-2-9g.90gb"), "1"},
                                {N("spec-gpu-3-1g.5gb"), "many"},
                                {N("spec-gpu-three-1g.5gb"), "1"},
                                {N("spec-layout-5"), ""},
                                {"n8s.nebuly.ai/spec-gpu-7-1g.5gb", "1"},
                                {N("status-layout-4"), "9g.90gb@0:used"},
                                // unreadable: its meaning is unknown
                                {N("spec-layout-4"), "9g.90gb@0"},
                                {N("spec-partitioning-plan"), "1"},
                                {"n8s.nebuly.ai/spec-partitioning-plan", "9223372036854775807"},
                                {"unrelated", "x"}});
  const SpecRepair repair = RepairSpec(node, ReadNodeGpus(node, Builtin()));
  const AnnotationPatch expected{{N("spec-layout-1"), std::nullopt},
                                 {N("spec-gpu-2-9g.90gb"), std::nullopt},
                                 {N("spec-gpu-3-1g.5gb"), std::nullopt},
                                 {N("spec-gpu-three-1g.5gb"), std::nullopt},
                                 {N("spec-layout-5"), std::nullopt},
                                 {"n8s.nebuly.ai/spec-gpu-7-1g.5gb", std::nullopt},
                                 {"n8s.nebuly.ai/spec-partitioning-plan", std::nullopt}};
  EXPECT_EQ(repair.patch, expected);
  EXPECT_EQ(repair.problems.size(), expected.size());
  EXPECT_THAT(repair.problems, Contains("spec-layout-5=: there is no GPU 5"));
  Node repaired = node;
  Apply(repair.patch, repaired.meta.annotations);
  EXPECT_THAT(RepairSpec(repaired, ReadNodeGpus(repaired, Builtin())).problems, IsEmpty());
}

TEST(SpecPatchTest, ContainsOnlyDifferencesOfTheTargetGpus) {
  const Node node = MigNode(3, {{N("spec-layout-0"), "7g.40gb@0"},
                                {N("spec-gpu-0-7g.40gb"), "1"},
                                {"n8s.nebuly.ai/spec-gpu-0-1g.5gb", "1"},
                                {N("spec-layout-1"), "7g.40gb@0"},
                                {N("spec-gpu-1-7g.40gb"), "1"},
                                {N("spec-partitioning-plan"), "1"},
                                {"unrelated", "x"}});
  const auto profile = [](std::string_view name) { return A100().FindProfile(name).value_or(0); };
  const AnnotationPatch patch = SpecPatch(
      node, {{0, &A100(), {{profile("3g.20gb"), 4}, {profile("3g.20gb"), 0}}}, {2, &A100(), {}}},
      "2");
  const AnnotationPatch expected{{N("spec-layout-0"), "3g.20gb@0,3g.20gb@4"},
                                 {N("spec-gpu-0-3g.20gb"), "2"},
                                 {N("spec-gpu-0-7g.40gb"), std::nullopt},
                                 {"n8s.nebuly.ai/spec-gpu-0-1g.5gb", std::nullopt},
                                 {N("spec-layout-2"), ""},
                                 {N("spec-partitioning-plan"), "2"}};
  EXPECT_EQ(patch, expected);
}

TEST(StatusPatchTest, ReplacesTheWholeStatus) {
  const Node node = MigNode(1, {{N("status-gpu-1-7g.40gb-free"), "1"},
                                {N("status-gpu-rubbish"), "1"},
                                {"n8s.nebuly.ai/status-partitioning-plan", "0"},
                                {N("status-model-0"), "A100-40GB"},
                                {N("spec-layout-0"), ""}});
  const auto me = A100().FindProfile("1g.5gb+me").value_or(0);
  const Gpu gpu{.index = 0, .model = &A100(), .instances = {{{me, 3}, true, "a/b"}}};
  const AnnotationPatch expected{{N("status-layout-0"), "1g.5gb+me@3:used"},
                                 {N("status-gpu-0-1g.5gb.me-used"), "1"},
                                 {N("status-holders-0"), "1g.5gb+me@3=a/b"},
                                 {N("status-gpu-1-7g.40gb-free"), std::nullopt},
                                 {N("status-gpu-rubbish"), std::nullopt},
                                 {"n8s.nebuly.ai/status-partitioning-plan", std::nullopt}};
  EXPECT_EQ(StatusPatch(node, {gpu}, ""), expected);
}

// All annotations of an object may have 256 KiB together.
TEST(StatusPatchTest, LimitsNamesOfHolders) {
  Gpu gpu{.index = 0, .model = &A100(), .instances = {}};
  const auto small = A100().FindProfile("1g.5gb").value_or(0);
  const std::string pod = std::string(63, 'n') + "/" + std::string(2000, 'p');
  for (uint8_t start = 0; start < 7; ++start) gpu.instances.push_back({{small, start}, true, pod});
  const AnnotationPatch patch = StatusPatch(MigNode(1), {gpu}, "");
  const std::string holders = patch.at(N("status-holders-0")).value();
  EXPECT_LE(holders.size(), size_t{8} << 10);
  EXPECT_EQ(std::ranges::count(holders, '='), 3) << "those that fit, whole";
  EXPECT_EQ(patch.at(N("status-gpu-0-1g.5gb-used")), "7");
}

// Unreadable holders do not affect the readable ones.
TEST(StatusTest, ReadsHoldersOfUsedInstancesOnly) {
  const std::string layout = "3g.20gb@4:used,1g.5gb@0:used,1g.5gb@1:free";
  const auto holders = [&](const std::string& text) {
    const NodeGpus read = ReadNodeGpus(
        *std::make_unique<Node>(MigNode(1, {{N("status-layout-0"), layout},
                                            {N("status-holders-0"), text},
                                            {N("status-holders-x"), "1g.5gb@0=ml/x"}})),
        Builtin());
    std::string all;
    for (const Gpu& gpu : read.gpus) {
      for (const Instance& instance : gpu.instances) all += instance.pod + ";";
    }
    return all;
  };
  EXPECT_EQ(holders("3g.20gb@4=ml/b, 1g.5gb@0=ml/a"), "ml/a;;ml/b;");
  EXPECT_EQ(holders("1g.5gb@1=ml/a"), ";;;") << "it is free";
  EXPECT_EQ(holders("1g.5gb@0"), ";;;");
  EXPECT_EQ(holders("9g.1gb@0=ml/a,=,,,3g.20gb@4=ml/b,2g.10gb@0=ml/a"), ";;ml/b;");
}

Gpu RandomGpu(int index, Random& random) {
  const auto& models = Builtin().models();
  const gpu::Model& model = *models[random.Below(models.size())];
  const auto layout = static_cast<gpu::LayoutId>(random.Below(model.layouts().size()));
  Gpu gpu{.index = index, .model = &model, .reported = true};
  for (const gpu::Placement& placement : PlacementsOf(model, layout)) {
    const bool used = random.Chance(0.5);
    gpu.instances.push_back({placement, used, used && random.Chance(0.5) ? "ml/p-0" : ""});
  }
  return gpu;
}

bool IsAnnotationKey(std::string_view key) {
  const std::string_view name = key.substr(key.find('/') + 1);
  const auto allowed = [](char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return name.size() <= 63 && std::all_of(name.begin(), name.end(), allowed) &&
         std::isalnum(name.back()) != 0;
}

TEST(AnnotationsTest, RandomStatusAndSpecSurviveRoundTrip) {
  Random random(7);
  Node node = MigNode(0);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Gpu> gpus(4);
    std::vector<TargetLayout> targets(4);
    for (int i = 0; i < 4; ++i) {
      gpus[i] = RandomGpu(i, random);
      targets[i] = {i, gpus[i].model, PlacementsOf(*gpus[i].model, gpus[i].All()->layout())};
    }
    Apply(StatusPatch(node, gpus, "6"), node.meta.annotations);
    Apply(SpecPatch(node, targets, "7"), node.meta.annotations);
    for (const auto& [key, value] : node.meta.annotations) EXPECT_TRUE(IsAnnotationKey(key)) << key;
    const NodeGpus read = ReadNodeGpus(node, Builtin());
    ASSERT_THAT(read.problems, IsEmpty());
    ASSERT_EQ(read.gpus, gpus);
    ASSERT_TRUE(StatusPatch(node, gpus, "6").empty());
    ASSERT_TRUE(SpecPatch(node, targets, "7").empty());
    ASSERT_TRUE(RepairSpec(node, read).patch.empty());
    const auto spec = ReadSpec(node, read);
    ASSERT_EQ(spec.size(), targets.size());
    for (size_t i = 0; i < spec.size(); ++i) ASSERT_EQ(spec[i].placements, targets[i].placements);
  }
}

TEST(AnnotationsTest, RandomStatusWithoutLayoutsKeepsCounts) {
  Random random(8);
  for (int round = 0; round < 2000; ++round) {
    Node node = MigNode(0);
    const std::vector<Gpu> gpus{RandomGpu(0, random)};
    Apply(StatusPatch(node, gpus, "6"), node.meta.annotations);
    const StringMap full = node.meta.annotations;
    node.meta.annotations.erase(N("status-layout-0"));
    node.meta.annotations.erase(N("status-holders-0"));
    const NodeGpus read = ReadNodeGpus(node, Builtin());
    ASSERT_THAT(read.problems, IsEmpty()) << Text(gpus[0]);
    ASSERT_EQ(read.gpus[0].assumed_starts, !gpus[0].instances.empty());
    Apply(StatusPatch(node, read.gpus, "6"), node.meta.annotations);
    for (const char* exact : {"status-layout-0", "status-holders-0"}) {
      if (full.contains(N(exact))) node.meta.annotations[N(exact)] = full.at(N(exact));
    }
    ASSERT_EQ(node.meta.annotations, full);
  }
}

}  // namespace
}  // namespace nos::cluster
