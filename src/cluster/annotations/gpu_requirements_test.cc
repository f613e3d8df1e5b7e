#include "cluster/gpu_requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(NeedTest, ReportsTheInvalidAnnotation) {
  const auto error = [](StringMap annotations) {
    const auto need = ReadGpuRequirements(annotations);
    return need.ok() ? "" : need.status().message();
  };
  const std::string memory(kNeedMemory), compute(kNeedCompute), models(kNeedModels);
  for (const char* bad : {"", "ten", "10", "-4Gi", "1023Ki"}) {
    EXPECT_THAT(error({{memory, bad}}), HasSubstr("is no amount of memory such as 10Gi")) << bad;
  }
  for (const char* bad : {"", "0", "1.01", "-1", "25%", "half"}) {
    EXPECT_THAT(error({{memory, "1Gi"}, {compute, bad}}), HasSubstr("is no part of a GPU")) << bad;
  }
  EXPECT_THAT(error({{memory, "1Gi"}, {std::string(kNeedIsolation), "yes"}}),
              HasSubstr("need-isolation: 'yes' is neither true nor false"));
  EXPECT_THAT(error({{memory, "1Gi"}, {models, "A30,,"}}), HasSubstr("has an empty name"));
  EXPECT_THAT(error({{compute, "1"}}), HasSubstr("needs nos.nebuly.com/need-memory beside it"));
  EXPECT_THAT(error({{memory, std::string(100'000, 'x')}}), ::testing::SizeIs(::testing::Lt(300u)));
}

}  // namespace
}  // namespace nos::cluster
