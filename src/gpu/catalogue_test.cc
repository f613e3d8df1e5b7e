#include "gpu/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace nos::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ModelOf(std::string_view product) {
  const Model* model = Catalogue::Builtin().FindByProduct(product);
  return model == nullptr ? "" : model->name();
}

TEST(Catalogue, BuiltinCatalogueIsComplete) {
  const Catalogue& catalogue = Catalogue::Builtin();
  EXPECT_THAT(catalogue.problems(), IsEmpty());
  EXPECT_EQ(catalogue.models().size(), 14U);
  for (const auto& model : catalogue.models()) {
    for (const Profile& p : model->profiles()) {
      EXPECT_GT(p.memory_mib, 0) << model->name() << " " << p.name;
      EXPECT_GE(p.nvml_id, 0) << model->name() << " " << p.name;
      EXPECT_LE(p.memory_mib, model->memory_gib() * 1024 + 1024) << model->name() << " " << p.name;
    }
    EXPECT_EQ(catalogue.FindByPciId(model->pci_ids().at(0)), model.get());
  }
}

TEST(Catalogue, MatchesProductNamesInBothSpellings) {
  EXPECT_EQ(ModelOf("NVIDIA A100-SXM4-40GB"), "A100-40GB");
  EXPECT_EQ(ModelOf("NVIDIA-A100-SXM4-40GB"), "A100-40GB");
  EXPECT_EQ(ModelOf("NVIDIA-A100-PCIE-40GB-MIG-1g.5gb"), "A100-40GB");
  EXPECT_EQ(ModelOf("NVIDIA-A100-80GB-PCIe-SHARED"), "A100-80GB");
  EXPECT_EQ(ModelOf("nvidia a100 80gb pcie"), "A100-80GB");
  EXPECT_EQ(ModelOf("A30"), "A30");
  EXPECT_EQ(ModelOf("NVIDIA H100 80GB HBM3"), "H100-80GB");
  EXPECT_EQ(ModelOf("NVIDIA H100 PCIe"), "H100-PCIE-80GB");
  EXPECT_EQ(ModelOf("NVIDIA-H100-NVL"), "H100-NVL-94GB");
  EXPECT_EQ(ModelOf("NVIDIA H800 NVL"), "H100-NVL-94GB");
  EXPECT_EQ(ModelOf("NVIDIA H800"), "H100-80GB");
  EXPECT_EQ(ModelOf("NVIDIA GH200 480GB"), "H100-96GB");
  EXPECT_EQ(ModelOf("NVIDIA GH200 144G HBM3e"), "GH200-144GB");
  EXPECT_EQ(ModelOf("NVIDIA H200 NVL"), "H200-141GB");
  EXPECT_EQ(ModelOf("NVIDIA H20"), "H100-96GB");
  EXPECT_EQ(ModelOf("NVIDIA B200"), "B200");
  EXPECT_EQ(ModelOf("NVIDIA GB200"), "GB200");
  EXPECT_EQ(ModelOf("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"), "RTX-PRO-6000");
  EXPECT_EQ(ModelOf("NVIDIA A10"), "");
  EXPECT_EQ(ModelOf(""), "");
}

TEST(Catalogue, SaysWhyAProductIsUnknown) {
  const Catalogue& catalogue = Catalogue::Builtin();
  EXPECT_EQ(catalogue.FindByProduct("NVIDIA RTX PRO 5000 Blackwell"), nullptr);
  EXPECT_THAT(catalogue.WhyUnknown("NVIDIA RTX PRO 5000 Blackwell"), HasSubstr("contradict"));
  EXPECT_EQ(catalogue.WhyUnknown("Tesla T4"),
            "GPU model \"Tesla T4\" cannot be partitioned: it is not in the catalogue; add it to "
            "the catalogue file (docs/catalogue.md)");
}

TEST(Model, FindsProfilesByEveryName) {
  const Model& a100 = *Catalogue::Builtin().FindByName("a100-80gb");
  EXPECT_EQ(a100.FindProfile("7g.79gb"), a100.FindProfile("7g.80gb"));
  EXPECT_EQ(a100.FindProfile("nvidia.com/mig-1g.10gb.me"), a100.FindProfile("1g.10gb+me"));
  EXPECT_EQ(a100.FindProfile("1g.10gb.me"), a100.FindProfile("1g.10gb+me"));
  EXPECT_EQ(a100.FindProfile("3g.20gb"), std::nullopt);
  EXPECT_EQ(a100.profile(*a100.FindProfile("1g.10gb+me")).resource_name,
            "nvidia.com/mig-1g.10gb.me");
}

TEST(Model, ParsesPlacements) {
  const Model& a100 = *Catalogue::Builtin().FindByName("A100-40GB");
  const auto placement = a100.ParsePlacement("3g.20gb@4");
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(a100.PlacementName(*placement), "3g.20gb@4");
  for (const char* bad : {"", "@", "3g.20gb", "3g.20gb@2", "3g.20gb@-4", "3g.20gb@4 ", "9g@0"}) {
    EXPECT_EQ(a100.ParsePlacement(bad).status().code(), Code::kInvalid) << bad;
  }
}

// A +me instance uses media engines, of which a GPU has few. The largest profile has all engines of
// the GPU, so no layout may need more.
TEST(Model, NoLayoutNeedsMoreEnginesThanTheGpuHas) {
  for (const auto& model : Catalogue::Builtin().models()) {
    const auto& whole = *std::ranges::max_element(model->profiles(), {}, &Profile::slots);
    const LayoutTable& table = model->layouts();
    for (size_t layout = 0; layout < table.size(); ++layout) {
      Engines needed;
      for (size_t i = 0; i < table.placements().size(); ++i) {
        if (((table.Members(static_cast<LayoutId>(layout)) >> i) & 1U) == 0) continue;
        const Engines& more = model->profile(table.placements()[i].profile).engines;
        needed.decode = static_cast<uint16_t>(needed.decode + more.decode);
        needed.encode = static_cast<uint16_t>(needed.encode + more.encode);
        needed.jpeg = static_cast<uint16_t>(needed.jpeg + more.jpeg);
        needed.ofa = static_cast<uint16_t>(needed.ofa + more.ofa);
      }
      ASSERT_LE(needed.decode, whole.engines.decode) << model->name();
      ASSERT_LE(needed.encode, whole.engines.encode) << model->name();
      ASSERT_LE(needed.jpeg, whole.engines.jpeg) << model->name();
      ASSERT_LE(needed.ofa, whole.engines.ofa) << model->name();
    }
  }
}

// Two +me profiles, each at most once, share one JPEG and one OFA engine.
TEST(Model, A30HasMediaEnginesForOneInstance) {
  const Model& a30 = *Catalogue::Builtin().FindByName("A30");
  const Placement small = *a30.ParsePlacement("1g.6gb+me@0");
  const Placement large = *a30.ParsePlacement("2g.12gb+me@2");
  const Placement plain = *a30.ParsePlacement("2g.12gb@2");
  EXPECT_FALSE(a30.layouts().FromPlacements({{small, large}}).ok());
  EXPECT_TRUE(a30.layouts().FromPlacements({{small, plain}}).ok());
}

constexpr const char* kSmallModel = R"(
models:
  - name: X1
    products: [X1]
    memoryGiB: 10
    computeSlices: 2
    slots: 2
    profiles:
      - {name: 1g.5gb, compute: 1, size: 1, max: 2, starts: [0, 1], memoryMiB: 5000}
      - {name: 2g.10gb, compute: 2, size: 2, max: 1, starts: [0], memoryMiB: 10000}
)";

TEST(UserCatalogue, AddsAModel) {
  const auto catalogue = Catalogue::Load(kSmallModel);
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT(catalogue->problems(), IsEmpty());
  const Model* model = catalogue->FindByProduct("ACME-X1-MIG-1g.5gb");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->layouts().size(), 5U);
  EXPECT_NE(catalogue->FindByName("A30"), nullptr);
}

TEST(UserCatalogue, ReplacesAModel) {
  std::string text = kSmallModel;
  text.replace(text.find("name: X1"), 8, "name: A30");
  const auto catalogue = Catalogue::Load(text);
  ASSERT_TRUE(catalogue.ok());
  EXPECT_EQ(catalogue->models().size(), Catalogue::Builtin().models().size());
  EXPECT_EQ(catalogue->FindByName("A30")->layouts().size(), 5U);
}

TEST(UserCatalogue, RemovesProfilesGeometriesAndModels) {
  const auto catalogue = Catalogue::Load(R"(
remove:
  - model: A30
    profiles: [1g.6gb+me, 2g.12gb+me]
    geometries: [{1g.6gb: 2, 2g.12gb: 1}]
  - model: B200
)");
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT(catalogue->problems(), IsEmpty());
  EXPECT_EQ(catalogue->FindByName("B200"), nullptr);
  const Model& a30 = *catalogue->FindByName("A30");
  EXPECT_EQ(a30.profiles().size(), 3U);
  EXPECT_EQ(a30.layouts().size(), 24U);  // 26 less 2g beside 1g+1g, twice
}

// The default file of earlier versions, including its typo.
TEST(UserCatalogue, ReadsGeometryListOfEarlierVersions) {
  const auto catalogue = Catalogue::Load(R"(
- models: [NVIDIA-A100-SXM4-80GB, NVIDIA-A100-80GB-PCIe]
  allowedGeometries:
    - {1g.10gb: 7}
    - {2g.20gb: 2, 3g.20gb: 1}
    - {7g.79gb: 1}
- models: [Voodoo-2]
  allowedGeometries: [{1g.5gb: 1}]
)");
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT(catalogue->problems(), IsEmpty());
  EXPECT_THAT(
      catalogue->ignored(),
      ElementsAre(IgnoredGeometry{"A100-80GB",
                                  "entry [0].allowedGeometries[1]: A100-80GB has no "
                                  "profile \"3g.20gb\""},
                  IgnoredGeometry{"", "entry [1]: no model \"Voodoo-2\" in the catalogue"}));
  const Model& a100 = *catalogue->FindByName("A100-80GB");
  EXPECT_EQ(a100.layouts().size(), 129U);  // 2^7 sets of 1g, and 7g
  EXPECT_EQ(catalogue->FindByName("A100-40GB")->layouts().size(), 2319U);
}

TEST(UserCatalogue, IgnoresImpossibleGeometries) {
  const auto catalogue = Catalogue::Load(R"(
knownMigGeometries:
- models: [A100-40GB]
  allowedGeometries: [{1g.5gb: 8}, {3g.20gb: 2, 1g.5gb: 1}, {3g.20gb: 2}, {1g.5gb: 3, 4g.20gb: 1}]
- {models: [A30], allowedGeometries: []}
)");
  ASSERT_TRUE(catalogue.ok());
  const std::string why =
      "A100-40GB cannot be partitioned like that: these instances do not fit together";
  EXPECT_THAT(
      catalogue->ignored(),
      ElementsAre(
          IgnoredGeometry{"A100-40GB", "knownMigGeometries[0].allowedGeometries[0]: " + why},
          IgnoredGeometry{"A100-40GB", "knownMigGeometries[0].allowedGeometries[1]: " + why}));
  EXPECT_THAT(catalogue->problems(),
              ElementsAre("knownMigGeometries[1]: allowedGeometries is empty; leave the entry out "
                          "to allow every geometry"));
  const Model& a100 = *catalogue->FindByName("A100-40GB");
  EXPECT_TRUE(a100.layouts().FromPlacements({{*a100.ParsePlacement("3g.20gb@4")}}).ok());
}

TEST(UserCatalogue, ModelWithoutPossibleGeometryIsNotRestricted) {
  const auto catalogue = Catalogue::Load(R"(
knownMigGeometries: [{models: [A100-80GB], allowedGeometries: [{3g.20gb: 2}]}]
)");
  ASSERT_TRUE(catalogue.ok());
  EXPECT_THAT(
      catalogue->ignored(),
      ElementsAre(
          IgnoredGeometry{
              "A100-80GB",
              "knownMigGeometries[0].allowedGeometries[0]: A100-80GB has no profile \"3g.20gb\""},
          IgnoredGeometry{"A100-80GB",
                          "knownMigGeometries[0]: no geometry is possible on A100-80GB, which "
                          "stays as it is"}));
  EXPECT_EQ(catalogue->FindByName("A100-80GB")->layouts().size(), 2319U);
}

TEST(UserCatalogue, InvalidEntryDoesNotAffectOthers) {
  const auto catalogue = Catalogue::Load(std::string(kSmallModel) + R"(
  - name: X2
    memoryGiB: 10
    computeSlices: 2
    slots: 2
    profiles: [{name: 1g.5gb, compute: 1, size: 3, max: 2, starts: [0], memoryMiB: 5000}]
  - {name: X3, memoryGiB: ten}
  - {nmae: X4}
  - 7
remove:
  - {model: A30, profiles: [9g.99gb, 1g.6gb+me]}
knownMigGeometries: [{models: [A30]}, {models: [A30], allowedGeometries: [{1g.6gb: 0}]}]
)");
  ASSERT_TRUE(catalogue.ok());
  EXPECT_NE(catalogue->FindByName("X1"), nullptr);
  EXPECT_EQ(catalogue->FindByName("X2"), nullptr);
  EXPECT_EQ(catalogue->FindByName("A30")->profiles().size(), 4U);
  EXPECT_THAT(
      catalogue->problems(),
      ElementsAre(
          "models[1]: profile 0: size must be 1..slots",
          "models[2]: memoryGiB: expected a number from 1 to 1000000",
          "models[3]: unknown key \"nmae\"", "models[4]: expected a mapping",
          "remove[0]: A30 has no profile \"9g.99gb\"",
          "knownMigGeometries[0]: allowedGeometries is missing",
          "knownMigGeometries[1].allowedGeometries[0]: 1g.6gb: expected a number from 1 to 32"));
}

TEST(UserCatalogue, RejectsTextThatIsNotACatalogue) {
  for (const char* text : {"models: [", "just text", "{modles: []}"}) {
    EXPECT_EQ(Catalogue::Load(text).status().code(), Code::kInvalid) << text;
  }
  EXPECT_TRUE(Catalogue::Load("").ok());
  EXPECT_TRUE(Catalogue::Load("# nothing\n").ok());
}

// Every example in docs/catalogue.md loads without a problem.
TEST(UserCatalogue, ManualExamplesLoadWithoutProblems) {
  std::ifstream file("docs/catalogue.md");
  ASSERT_TRUE(file) << "run from the source folder";
  std::string line, example;
  int examples = 0;
  for (bool inside = false; std::getline(file, line);) {
    if (!line.starts_with("```")) {
      if (inside) example += line + '\n';
      continue;
    }
    inside = line == "```yaml";
    if (inside || example.empty()) continue;
    const auto catalogue = Catalogue::Load(std::exchange(example, {}));
    ASSERT_TRUE(catalogue.ok()) << catalogue.status().message();
    EXPECT_THAT(catalogue->problems(), IsEmpty());
    ++examples;
  }
  EXPECT_GE(examples, 3);
}

}  // namespace
}  // namespace nos::gpu
