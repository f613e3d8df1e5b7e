#include "dra/extended_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::dra {
namespace {

using ::testing::ElementsAre;
using Mapping = ExtendedClaim::Mapping;

class ExtendedResourcesTest : public ::testing::Test {
 protected:
  void AddClass(const std::string& name, const std::string& resource, int64_t created = 0) {
    auto added = std::make_shared<DeviceClass>();
    added->name = name;
    added->extended_resource_name = resource;
    added->created = Time(std::chrono::seconds(created));
    classes_.Set(name, std::move(added));
  }
  void AddContainer(const std::string& name, const std::string& resource, int64_t amount) {
    pod_.containers.push_back(Of(name, resource, amount));
  }
  void AddInit(const std::string& name, const std::string& resource, int64_t amount,
               bool sidecar = false) {
    pod_.init_containers.push_back(Of(name, resource, amount));
    pod_.init_containers.back().restart_always = sidecar;
  }
  ExtendedClaim Made() const { return ExtendedResources(classes_).ClaimFor(pod_, info_); }
  // "container-0-request-1: 2 of gpu.example.com" for each request.
  std::vector<std::string> Requests() const {
    std::vector<std::string> texts;
    const ExtendedClaim made = Made();
    if (made.claim == nullptr) return texts;
    for (const DeviceRequest& request : made.claim->requests) {
      texts.push_back(request.name + ": " + std::to_string(request.exactly->count) + " of " +
                      request.exactly->device_class);
    }
    return texts;
  }
  void Offer(const std::string& resource, int64_t amount) {
    auto node = std::make_shared<cluster::Node>(*info_.node);
    node->allocatable[resource] = Quantity::FromValue(amount);
    info_.node = std::move(node);
  }

  static cluster::Container Of(const std::string& name, const std::string& resource,
                               int64_t amount) {
    cluster::Container container;
    container.name = name;
    container.requests["cpu"] = Quantity::FromValue(1);
    container.requests[resource] = Quantity::FromValue(amount);
    return container;
  }

  ExtendedResourcesTest() {
    pod_.meta.ns = "ml";
    pod_.meta.name = "train";
    pod_.meta.uid = "u1";
    info_.node = std::make_shared<const cluster::Node>();
  }
  cluster::Table<DeviceClass> classes_;
  cluster::Pod pod_;
  cluster::NodeInfo info_;
};

// Every class has an implicit name, which no quota knows.
TEST_F(ExtendedResourcesTest, ClassServesItsNamedResourceOnly) {
  AddClass("gpu.example.com", "nvidia.com/gpu");
  const ExtendedResources mapped(classes_);
  ASSERT_NE(mapped.ClassOf("nvidia.com/gpu"), nullptr);
  EXPECT_EQ(*mapped.ClassOf("nvidia.com/gpu"), "gpu.example.com");
  EXPECT_EQ(mapped.ClassOf("deviceclass.resource.kubernetes.io/gpu.example.com"), nullptr);
  EXPECT_EQ(mapped.ClassOf("gpu.example.com"), nullptr);
  EXPECT_EQ(mapped.ClassOf(""), nullptr);
}

TEST_F(ExtendedResourcesTest, NewestClassServesAResourceAndTiesGoByName) {
  AddClass("b", "nvidia.com/gpu", 10);
  AddClass("a", "nvidia.com/gpu", 10);
  EXPECT_EQ(*ExtendedResources(classes_).ClassOf("nvidia.com/gpu"), "a");
  AddClass("c", "nvidia.com/gpu", 11);
  EXPECT_EQ(*ExtendedResources(classes_).ClassOf("nvidia.com/gpu"), "c");
}

TEST_F(ExtendedResourcesTest, NodeWithADevicePluginNeedsNoClaim) {
  AddClass("gpu", "nvidia.com/gpu");
  AddContainer("main", "nvidia.com/gpu", 2);
  EXPECT_THAT(Requests(), ElementsAre("container-0-request-1: 2 of gpu"));
  Offer("nvidia.com/gpu", 0);
  EXPECT_THAT(Requests(), ElementsAre("container-0-request-1: 2 of gpu"));
  Offer("nvidia.com/gpu", 1);
  EXPECT_THAT(Requests(), ElementsAre()) << "the resource is the device plugin's, in use or not";
}

TEST_F(ExtendedResourcesTest, ResourcesWithoutAClassAreLeftOut) {
  AddClass("gpu", "nvidia.com/gpu");
  AddContainer("main", "example.com/fpga", 1);
  EXPECT_THAT(Requests(), ElementsAre());
  EXPECT_TRUE(ExtendedResources(classes_).ServedFor(pod_).empty());
  AddContainer("none", "nvidia.com/gpu", 0);
  EXPECT_TRUE(ExtendedResources(classes_).ServedFor(pod_).empty());
}

TEST_F(ExtendedResourcesTest, ContainersSideBySideHaveRequestsOfTheirOwn) {
  AddClass("gpu", "nvidia.com/gpu");
  AddInit("sidecar", "nvidia.com/gpu", 1, true);
  AddContainer("main", "nvidia.com/gpu", 3);
  EXPECT_THAT(Requests(),
              ElementsAre("container-0-request-1: 1 of gpu", "container-1-request-1: 3 of gpu"));
  EXPECT_THAT(Made().mappings,
              ElementsAre(Mapping{"sidecar", "nvidia.com/gpu", "container-0-request-1"},
                          Mapping{"main", "nvidia.com/gpu", "container-1-request-1"}));
}

TEST_F(ExtendedResourcesTest, InitContainerUsesTheDevicesOfLaterContainers) {
  AddClass("gpu", "nvidia.com/gpu");
  AddInit("load", "nvidia.com/gpu", 1);
  AddContainer("main", "nvidia.com/gpu", 1);
  EXPECT_THAT(Requests(), ElementsAre("container-1-request-1: 1 of gpu"));
  EXPECT_THAT(Made().mappings,
              ElementsAre(Mapping{"main", "nvidia.com/gpu", "container-1-request-1"},
                          Mapping{"load", "nvidia.com/gpu", "container-1-request-1"}));
}

TEST_F(ExtendedResourcesTest, InitContainersShareWhatLaterContainersLack) {
  AddClass("gpu", "nvidia.com/gpu");
  AddInit("first", "nvidia.com/gpu", 2);
  AddInit("second", "nvidia.com/gpu", 4);
  AddContainer("main", "nvidia.com/gpu", 1);
  EXPECT_THAT(Requests(),
              ElementsAre("container-1-request-1: 3 of gpu", "container-2-request-1: 1 of gpu"));
  EXPECT_THAT(Made().mappings,
              ElementsAre(Mapping{"main", "nvidia.com/gpu", "container-2-request-1"},
                          Mapping{"first", "nvidia.com/gpu", "container-2-request-1"},
                          Mapping{"first", "nvidia.com/gpu", "container-1-request-1"},
                          Mapping{"second", "nvidia.com/gpu", "container-2-request-1"},
                          Mapping{"second", "nvidia.com/gpu", "container-1-request-1"}));
}

TEST_F(ExtendedResourcesTest, NameOfTheClaimIsAValidNameOfThePodAlone) {
  EXPECT_EQ(ExtendedClaimKey(pod_), "ml/train-extended-resources-u1");
  pod_.meta.name = std::string(230, 'a') + ".b";
  pod_.meta.uid = "3b5f0c1e-0000-4000-8000-000000000001";
  const std::string key = ExtendedClaimKey(pod_);
  EXPECT_EQ(key.size(), std::string("ml/").size() + 253);
  const std::string other = key;
  pod_.meta.uid.back() = '2';
  EXPECT_NE(ExtendedClaimKey(pod_), other);
  pod_.meta.name = std::string(196, 'a') + ".b";
  EXPECT_EQ(ExtendedClaimKey(pod_).find(".-"), std::string::npos);
}

TEST_F(ExtendedResourcesTest, ClaimIsOwnedByThePodAndKeptByTheFinalizer) {
  AddClass("gpu", "nvidia.com/gpu");
  AddContainer("main", "nvidia.com/gpu", 2);
  const Json json = WriteExtendedClaim(*Made().claim, pod_);
  ResourceClaim read;
  ASSERT_TRUE(ReadResourceClaim(json, read).ok());
  EXPECT_EQ(read.Key(), ExtendedClaimKey(pod_));
  EXPECT_TRUE(IsExtendedClaim(read));
  EXPECT_EQ(SpecText(read), SpecText(*Made().claim));
  EXPECT_THAT(read.finalizers, ElementsAre(std::string(kClaimFinalizer)));
  const Json& owner = Find(json, "metadata", "ownerReferences")->get_array().at(0);
  EXPECT_EQ(FindString(owner, "uid"), "u1");
}

}  // namespace
}  // namespace nos::dra
