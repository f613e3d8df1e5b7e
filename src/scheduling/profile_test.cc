#include "scheduling/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codec/yaml.h"

namespace nos::scheduling {
namespace {

Result<Framework> Read(const std::string& profiles, std::vector<std::string>& notes,
                       std::string_view name = "") {
  const auto documents = ParseYaml(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + profiles);
  return ReadProfile(documents->front(), name, notes);
}

bool FiltersBy(const Framework& framework, const std::string& plugin) {
  return std::ranges::any_of(framework.filters(),
                             [&](const auto* filter) { return filter->Name() == plugin; });
}

TEST(ProfileTest, WithoutProfilesItIsTheDefault) {
  std::vector<std::string> notes;
  const auto framework = Read("", notes);
  ASSERT_TRUE(framework.ok());
  EXPECT_EQ(framework->filters().size(), Framework::Default().filters().size());
  EXPECT_TRUE(notes.empty());
}

TEST(ProfileTest, LeavesOutWhatIsDisabled) {
  std::vector<std::string> notes;
  const auto framework = Read(R"(
profiles:
- schedulerName: other
- schedulerName: mine
  plugins:
    multiPoint: {disabled: [{name: TaintToleration}]}
    filter: {disabled: [{name: NodeAffinity}]}
)",
                              notes, "mine");
  ASSERT_TRUE(framework.ok()) << framework.status().message();
  EXPECT_FALSE(FiltersBy(*framework, "TaintToleration"));
  EXPECT_FALSE(FiltersBy(*framework, "NodeAffinity"));
  EXPECT_TRUE(FiltersBy(*framework, "NodeResourcesFit"));
}

TEST(ProfileTest, OneMayDisableAllAndEnableAFew) {
  std::vector<std::string> notes;
  const auto framework = Read(R"(
profiles:
- plugins:
    filter:
      disabled: [{name: "*"}]
      enabled: [{name: NodeName}, {name: Coscheduling}]
  pluginConfig: [{name: NodeAffinity, args: {}}]
)",
                              notes);
  ASSERT_TRUE(framework.ok());
  EXPECT_EQ(framework->filters().size(), 1u);
  EXPECT_TRUE(FiltersBy(*framework, "NodeName"));
  EXPECT_EQ(notes, (std::vector<std::string>{"plugin 'Coscheduling' is not simulated",
                                             "pluginConfig of 'NodeAffinity' is not simulated"}));
}

TEST(ProfileTest, RefusesWhatIsNoSuchConfiguration) {
  std::vector<std::string> notes;
  EXPECT_EQ(ReadProfile(JsonObject{{"kind", "Pod"}}, "", notes).status().code(), Code::kInvalid);
  EXPECT_EQ(Read("profiles: [{schedulerName: a}]", notes, "b").status().message(),
            "there is no profile with schedulerName 'b'");
  EXPECT_TRUE(Read("profiles: [7, {plugins: {filter: {disabled: x}}}]", notes).ok());
}

}  // namespace
}  // namespace nos::scheduling
