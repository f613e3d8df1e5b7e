// The output of `nos agent --once --print` over the doubled driver.
#include "device/describe.h"

#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;

struct Described {
  explicit Described(const Json& state, const std::string& path = NvmlNode::library())
      : node(state), library(NvmlLibrary::Open(path).value()) {}
  NodeDescription Look() {
    NvmlBackend backend(*library, gpu::Catalogue::Builtin());
    return Describe(backend, gpu::Catalogue::Builtin()).value();
  }
  NvmlNode node;
  std::unique_ptr<NvmlLibrary> library;
};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Describe, DescribesMachineWithAllKindsOfGpus) {
  Described d(
      JsonObject{{"gpus", JsonArray{{{"model", "A100-40GB"}},
                                    {{"model", "H200-141GB"}, {"mig", false}},
                                    {{"model", "A30"}, {"mig", false}, {"migPending", true}},
                                    {{"model", ""}},
                                    {{"model", "RTX-PRO-6000"}},
                                    {{"model", "B200"}, {"lost", true}}}}});
  {
    NvmlBackend backend(*d.library, gpu::Catalogue::Builtin());
    ASSERT_TRUE(backend.Create(0, "3g.20gb", 4).ok());
  }
  const NodeDescription node = d.Look();
  const std::string text = DescriptionText(node);
  EXPECT_TRUE(Has(text, "driver 580.95.05, 6 GPUs"));
  EXPECT_TRUE(Has(text, "3g.20gb@4  1   4      MIG-")) << text;
  EXPECT_TRUE(Has(text, "off, on after a reset")) << text;
  EXPECT_TRUE(Has(text, "the driver lists the profiles of this GPU only in MIG mode")) << text;
  EXPECT_TRUE(Has(text, "no MIG")) << text;
  EXPECT_TRUE(Has(text, "GPU_IS_LOST")) << text;
  EXPECT_TRUE(Has(text, "confirmed")) << text;
  EXPECT_FALSE(Has(text, "differences")) << text;
  EXPECT_EQ(node.gpus[1].profiles.size(), 7u) << "with MIG off";
  for (const std::string_view line : Split(text, '\n')) {
    const bool names_a_file = line.starts_with("driver ");
    if (!names_a_file && !Has(std::string(line), "NVML_ERROR")) {
      EXPECT_LE(DisplayWidth(line), 100u) << line;
    }
  }
}

TEST(Describe, ComparesProfilesWithCatalogue) {
  Described d(JsonObject{{"gpus", JsonArray{{{"model", "A100-80GB"},
                                             {"product", "NVIDIA A100-SXM4-80GB"},
                                             {"renames", {{"3g.40gb", "3g.39gb"}}}}}}});
  d.node.Fault(
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"}, {"count", 3}, {"times", 2}});
  const NodeDescription node = d.Look();
  const std::string text = DescriptionText(node);
  EXPECT_TRUE(Has(text, "  1g.10gb: starts 0,1,2 (catalogue: 0,1,2,3,4,5,6)")) << text;
  EXPECT_TRUE(Has(text, "  3g.40gb: name 3g.39gb (catalogue: 3g.40gb)")) << text;
  const Json json = DescriptionJson(node);
  const Json& gpu = json.at("gpus").at(0);
  EXPECT_EQ(FindString(gpu, "model"), "A100-80GB");
  EXPECT_EQ(gpu.at("profiles").as_array().size(), 7u);
  EXPECT_EQ(gpu.at("profiles").at(0).at("catalogue").at("differences").as_array().size(), 1u);
  EXPECT_EQ(gpu.at("profiles").at(1).at("catalogue").at("differences").as_array().size(), 0u);
}

TEST(Describe, ReportsOldDriver) {
  Described d(JsonObject{{"gpus", JsonArray{{{"model", "A100-40GB"}}}}}, NvmlNode::old_library());
  const std::string text = DescriptionText(d.Look());
  EXPECT_TRUE(Has(text, "driver ?, 1 GPU")) << text;
  EXPECT_TRUE(Has(text, "warning: the driver is too old: errors of GPUs (XIDs)")) << text;
}

TEST(Describe, ReportsMissingPermissionAndDescribesTheRest) {
  Described d(JsonObject{{"gpus", JsonArray{{{"model", "A100-40GB"}}}}});
  d.node.Fault(
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"}, {"error", 4}, {"times", 99}});
  d.node.Fault({{"call", "nvmlDeviceGetGpuInstances"}, {"error", 4}, {"times", 99}});
  const std::string text = DescriptionText(d.Look());
  EXPECT_TRUE(Has(text, "1g.5gb: placements unknown: ")) << text;
  EXPECT_TRUE(Has(text, "no instances: nvmlDeviceGetGpuInstances: NVML_ERROR_NO_PERMISSION"))
      << text;
}

}  // namespace
}  // namespace nos::device
