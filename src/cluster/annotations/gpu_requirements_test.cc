#include "cluster/gpu_requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::cluster {
namespace {

using ::testing::ElementsAre;

TEST(NeedTest, IsReadFromAnnotations) {
  const auto need = ReadGpuRequirements({{std::string(kNeedMemory), "10Gi"},
                                         {std::string(kNeedCompute), "0.25"},
                                         {std::string(kNeedIsolation), "true"},
                                         {std::string(kNeedModels), "A100-40GB, H100-80GB"},
                                         {std::string(kNeedContainer), "main"}});
  ASSERT_TRUE(need.ok() && *need);
  EXPECT_EQ((*need)->memory_mib, 10 * 1024);
  EXPECT_EQ((*need)->compute_milli, 250);
  EXPECT_TRUE((*need)->isolated);
  EXPECT_THAT((*need)->models, ElementsAre("A100-40GB", "H100-80GB"));
  EXPECT_EQ((*need)->container, "main");
}

TEST(NeedTest, MemoryAloneIsARequirement) {
  const auto need = ReadGpuRequirements({{std::string(kNeedMemory), "1500M"}, {"other", "x"}});
  ASSERT_TRUE(need.ok() && *need);
  EXPECT_EQ((*need)->memory_mib, 1431);  // rounded up
  EXPECT_EQ((*need)->compute_milli, 0);
  EXPECT_FALSE((*need)->isolated);
  EXPECT_FALSE(ReadGpuRequirements({{"other", "x"}}).value());
}

struct InvalidNeed {
  std::string_view key;
  const char* value;
  const char* error;
};

class InvalidNeedTest : public ::testing::TestWithParam<InvalidNeed> {};

TEST_P(InvalidNeedTest, IsReportedWithKeyAndValue) {
  const auto& [key, value, error] = GetParam();
  StringMap annotations{{std::string(kNeedMemory), "1Gi"}};
  annotations[std::string(key)] = value;
  const auto need = ReadGpuRequirements(annotations);
  ASSERT_EQ(need.status().code(), Code::kInvalid);
  EXPECT_EQ(need.status().message(),
            "annotation " + std::string(key) + ": '" + value + "' " + error);
}

constexpr const char* kNoMemory = "is no amount of memory such as 10Gi, or less than 1Mi";
constexpr const char* kNoCompute = "is no part of a GPU such as 0.25, above 0 and up to 1";

INSTANTIATE_TEST_SUITE_P(
    All, InvalidNeedTest,
    ::testing::Values(
        InvalidNeed{kNeedMemory, "", kNoMemory}, InvalidNeed{kNeedMemory, "ten", kNoMemory},
        InvalidNeed{kNeedMemory, "10", kNoMemory}, InvalidNeed{kNeedMemory, "-4Gi", kNoMemory},
        InvalidNeed{kNeedMemory, "1023Ki", kNoMemory}, InvalidNeed{kNeedCompute, "", kNoCompute},
        InvalidNeed{kNeedCompute, "0", kNoCompute}, InvalidNeed{kNeedCompute, "1.01", kNoCompute},
        InvalidNeed{kNeedCompute, "-1", kNoCompute}, InvalidNeed{kNeedCompute, "25%", kNoCompute},
        InvalidNeed{kNeedCompute, "half", kNoCompute},
        InvalidNeed{kNeedIsolation, "yes", "is neither true nor false"},
        InvalidNeed{kNeedModels, "A30,,", "has an empty name"}));

TEST(NeedTest, OtherRequirementsNeedMemory) {
  EXPECT_EQ(
      ReadGpuRequirements({{std::string(kNeedCompute), "1"}}).status().message(),
      "annotation nos.nebuly.com/need-compute: '1' needs nos.nebuly.com/need-memory beside it");
}

TEST(NeedTest, ErrorShortensLongValue) {
  const auto need = ReadGpuRequirements({{std::string(kNeedMemory), std::string(100'000, 'x')}});
  EXPECT_LT(need.status().message().size(), 300u);
}

}  // namespace
}  // namespace nos::cluster
