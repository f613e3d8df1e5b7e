// Compares the built-in catalogue with facts collected from NVIDIA (test/data/README.md), and
// checks rules that hold without them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <set>

#include "gpu/catalogue.h"
#include "gpu/modes.h"

namespace nos::gpu {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The file is
// JSON, which yaml-cpp reads as YAML.
constexpr const char* kSource = "test/data/mig_placements.json";

std::map<std::string, std::string> IdsByModel() {
  std::map<std::string, std::string> ids;
  for (const auto& model : Catalogue::Builtin().models()) {
    for (const uint32_t id : model->pci_ids()) {
      std::string& text = ids[model->name()];
      text += fmt::format("{}{:04X}", text.empty() ? "" : " ", id >> 16);
      EXPECT_EQ(id & 0xffff, 0x10DEU) << model->name() << ": NVIDIA's vendor id";
    }
  }
  return ids;
}

TEST(CatalogueSource, PciDeviceIdsOfEveryModel) {
  EXPECT_THAT(IdsByModel(),
              UnorderedElementsAre(
                  Pair("A30", "20B7"), Pair("A100-40GB", "20B0 20B1 20F1 20F6"),
                  Pair("A100-80GB", "20B2 20B5 20F3 20F5"), Pair("H100-80GB", "2330 2324"),
                  Pair("H100-PCIE-80GB", "2331 2322"), Pair("H100-NVL-94GB", "2321 233A"),
                  Pair("H100-96GB", "2342 233D 2329 20B6"), Pair("GH200-144GB", "2348"),
                  Pair("H200-141GB", "2335 233B"), Pair("B200", "2901"), Pair("GB200", "2941"),
                  Pair("B300", "3182"), Pair("GB300", "31C2"), Pair("RTX-PRO-6000", "2BB5")));
}

TEST(CatalogueSource, ChartListsEveryMigProfile) {
  std::set<std::string> profiles, listed;
  for (const auto& model : Catalogue::Builtin().models()) {
    for (const Profile& profile : model->profiles()) {
      if (!IsPlain(profile)) profiles.insert(profile.name);
    }
  }
  std::ifstream file("deploy/helm/nos/files/mig-profiles.txt");
  for (std::string line; std::getline(file, line);) listed.insert(line);
  EXPECT_EQ(listed, profiles);
}

// NVML's profile numbers (id and NVML_GPU_INSTANCE_PROFILE_*) are equal on all models with eight
// slots: one plain profile per size, 1g with all media engines, and 1g with twice the memory.
TEST(CatalogueSource, NvmlProfileIdsAreEqualOnEightSlotModels) {
  const std::map<int, std::pair<int, int>> plain = {
      {1, {19, 0}}, {2, {14, 1}}, {3, {9, 2}}, {4, {5, 3}}, {7, {0, 4}}};
  int models = 0;
  for (const auto& model : Catalogue::Builtin().models()) {
    if (model->slots() != 8) continue;
    ++models;
    for (const Profile& p : model->profiles()) {
      std::pair<int, int> expected = plain.at(p.compute);
      if (p.compute == 1 && p.name.ends_with("+me")) expected = {20, 7};
      if (p.compute == 1 && p.slots == 2) expected = {15, 9};
      EXPECT_EQ(std::pair(p.nvml_id, p.nvml_enum), expected) << model->name() << " " << p.name;
    }
  }
  EXPECT_EQ(models, 12);
}

// "differs: 19, not 20" if the source contains the fact.
template <typename T>
std::string Compare(const YAML::Node& row, const char* field, const T& ours) {
  const YAML::Node theirs = row[field];
  if (!theirs || theirs.IsNull() || theirs.as<T>() == ours) return "";
  return fmt::format(" {}", field);
}

std::string Differences(const YAML::Node& row, const Profile& ours) {
  std::string text = Compare(row, "id", ours.nvml_id);
  text += Compare(row, "nvml_profile_enum", ours.nvml_enum);
  text += Compare(row, "memory_mb", ours.memory_mib);
  text += Compare(row, "compute_slices", ours.compute);
  text += Compare(row, "memory_slots", ours.slots);
  text += Compare(row, "max_count", ours.max_count);
  text += Compare(row, "placements", std::vector<int>(ours.starts.begin(), ours.starts.end()));
  if (ours.multiprocessors > 0) text += Compare(row, "sm_count", ours.multiprocessors);
  return text;
}

void CompareModel(const YAML::Node& row, const Model& model) {
  std::set<std::string> names;
  for (const YAML::Node& profile : row["profiles"]) {
    const auto name = profile["name"].as<std::string>();
    names.insert(name);
    const auto ours = model.FindProfile(name);
    ASSERT_TRUE(ours) << model.name() << " lacks " << name;
    EXPECT_EQ(Differences(profile, model.profile(*ours)), "") << model.name() << " " << name;
  }
  for (const Profile& p : model.profiles()) {
    EXPECT_TRUE(names.contains(p.name)) << model.name() << " has " << p.name;
  }
}

TEST(CatalogueSource, BuiltinRowsEqualCollectedFacts) {
  std::set<const Model*> compared;
  for (const YAML::Node& row : YAML::LoadFile(kSource)) {
    for (const YAML::Node& id : row["pci_device_ids"]) {
      const auto text = id.as<std::string>();
      const Model* model =
          Catalogue::Builtin().FindByPciId(static_cast<uint32_t>(std::stoul(text, nullptr, 16)));
      ASSERT_NE(model, nullptr) << text;
      CompareModel(row, *model);
      compared.insert(model);
    }
  }
  EXPECT_EQ(compared.size(), Catalogue::Builtin().models().size());
}

}  // namespace
}  // namespace nos::gpu
