#include <gmock/gmock.h>

#include "dra/cel_expressions.h"
#include "dra/device_index.h"

namespace nos::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kClass = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";

Json DeviceOf(const std::string& name, const std::string& type, const std::string& profile) {
  JsonObject attributes{{"type", {{"string", type}}}};
  if (!profile.empty()) attributes["profile"] = {{"string", profile}};
  return {{"name", name}, {"attributes", attributes}};
}

// A node with a GPU and the instances 1g.10gb and 3g.40gb of it.
class MostOfTest : public ::testing::Test {
 protected:
  MostOfTest() {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = "n";
    snapshot_.SetNode(node);
    index_.SetBase(&snapshot_);
    SetSlice({DeviceOf("gpu-0", "gpu", ""), DeviceOf("gpu-0-mig-1g10gb-19-6", "mig", "1g.10gb"),
              DeviceOf("gpu-0-mig-1g10gb-19-5", "mig", "1g.10gb"),
              DeviceOf("gpu-0-mig-3g40gb-9-0", "mig", "3g.40gb")});
  }

  void SetSlice(const JsonArray& devices) {
    auto slice = std::make_shared<ResourceSlice>();
    const Json spec{{"driver", "gpu.nvidia.com"},
                    {"nodeName", "n"},
                    {"pool", {{"name", "n"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                    {"devices", devices}};
    ASSERT_TRUE(
        ReadResourceSlice(Json{{"metadata", {{"name", "s"}}}, {"spec", spec}}, *slice).ok());
    index_.SetSlice("s", slice);
  }
  // `selector`: of the device, with "gpu" for its attributes.
  static ExactRequest Asks(const std::string& selector, int64_t count = 1) {
    ExactRequest request;
    request.device_class = "gpu.nvidia.com";
    request.mode = count > 0 ? "ExactCount" : "All";
    request.count = count;
    if (!selector.empty()) {
      request.selectors = {"device.attributes['gpu.nvidia.com']." + selector};
    }
    return request;
  }
  DeviceCounts MostOf(const DeviceRequest& request) {
    ResourceClaim claim;
    claim.requests = {request};
    claim.spec = Name("spec " + std::to_string(specs_++));
    return index_.MostOf(claim, any_);
  }

  cluster::ClusterSnapshot snapshot_;
  DeviceIndex index_{Features::Of(37), std::make_shared<const CelExpressions>()};
  const FindClass any_ = [](const std::string& name) {
    auto found = std::make_shared<DeviceClass>();
    found->name = name;
    return found;
  };
  int specs_ = 0;
};

TEST_F(MostOfTest, IsTheLargestDeviceThatCanServe) {
  EXPECT_THAT(MostOf({"r", Asks("profile == '1g.10gb'", 2), {}}),
              ElementsAre(Pair(kClass, 2), Pair("nvidia.com/mig-1g.10gb", 2)));
  EXPECT_THAT(MostOf({"r", Asks("type == 'mig'"), {}}),
              ElementsAre(Pair(kClass, 1), Pair("nvidia.com/mig-3g.40gb", 1)));
  EXPECT_THAT(MostOf({"r", Asks(""), {}}), ElementsAre(Pair(kClass, 1), Pair("nvidia.com/gpu", 1)));
  EXPECT_THAT(MostOf({"r", Asks("type == 'other'"), {}}), ElementsAre(Pair(kClass, 1)));
}

TEST_F(MostOfTest, CountsWhatAnyAlternativeMayTake) {
  ExactRequest large = Asks("profile == '3g.40gb'"), small = Asks("profile == '1g.10gb'", 2);
  large.name = "large";
  small.name = "small";
  EXPECT_THAT(MostOf({"r", {}, {large, small}}),
              ElementsAre(Pair(kClass, 2), Pair("nvidia.com/mig-1g.10gb", 2),
                          Pair("nvidia.com/mig-3g.40gb", 1)));
}

TEST_F(MostOfTest, AllMeansTheDevicesOfOneNode) {
  EXPECT_THAT(MostOf({"r", Asks("profile == '1g.10gb'", 0), {}}),
              ElementsAre(Pair(kClass, 2), Pair("nvidia.com/mig-1g.10gb", 2)));
}

TEST_F(MostOfTest, AdminsAndSharesCountLess) {
  ExactRequest monitor = Asks("");
  monitor.admin_access = true;
  EXPECT_THAT(MostOf({"r", monitor, {}}), IsEmpty());
  ExactRequest share = Asks("type == 'gpu'");
  share.capacity = Amounts{{Name("memory"), Quantity::FromValue(int64_t{20} << 30)}};
  EXPECT_THAT(MostOf({"r", share, {}}), ElementsAre(Pair(kClass, 1), Pair("nvidia.com/gpu", 1)))
      << "the GPU is given to one claim only";
  Json shared = DeviceOf("gpu-0", "gpu", "");
  shared.get_object()["allowMultipleAllocations"] = true;
  SetSlice({shared});
  EXPECT_THAT(MostOf({"r", share, {}}),
              ElementsAre(Pair(kClass, 1), Pair("nos.nebuly.com/gpu-memory", 20)));
}

// The API server may show slices and claims before nodes.
// A node may publish a device with a name of its own choice.
TEST_F(MostOfTest, DeviceWhoseAttributesContradictItsNameDoesNotCount) {
  SetSlice({DeviceOf("gpu-0", "mig", "1g.10gb"), DeviceOf("gpu-1-mig-7g80gb-0-0", "mig", "1g.10gb"),
            DeviceOf("gpu-0-mig-1g10gb-19-6", "mig", "1g.10gb")});
  EXPECT_THAT(MostOf({"r", Asks("profile == '1g.10gb'"), {}}),
              ElementsAre(Pair(kClass, 1), Pair("nvidia.com/mig-1g.10gb", 1)));
}

TEST_F(MostOfTest, FollowsNodes) {
  ResourceClaim claim;
  claim.requests = {{"r", Asks("type == 'gpu'"), {}}};
  claim.spec = Name("spec");
  const auto node = snapshot_.Find("n")->node;
  snapshot_.RemoveNode("n");
  index_.OnNodes();
  EXPECT_THAT(index_.MostOf(claim, any_), ElementsAre(Pair(kClass, 1)));
  snapshot_.SetNode(node);
  index_.OnNodes();
  EXPECT_THAT(index_.MostOf(claim, any_), ElementsAre(Pair(kClass, 1), Pair("nvidia.com/gpu", 1)));
}

TEST_F(MostOfTest, FollowsSlices) {
  ResourceClaim claim;
  claim.requests = {{"r", Asks("type == 'mig'"), {}}};
  claim.spec = Name("spec");
  EXPECT_EQ(index_.MostOf(claim, any_).count("nvidia.com/mig-3g.40gb"), 1U);
  SetSlice({DeviceOf("gpu-0-mig-1g10gb-19-6", "mig", "1g.10gb")});
  EXPECT_THAT(index_.MostOf(claim, any_),
              ElementsAre(Pair(kClass, 1), Pair("nvidia.com/mig-1g.10gb", 1)));
}

}  // namespace
}  // namespace nos::dra
