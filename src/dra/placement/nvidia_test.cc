#include "dra/placement/nvidia.h"

#include <gtest/gtest.h>

#include "dra/placement/gpus.h"

namespace nos::dra {
namespace {

constexpr const char* kProduct = "NVIDIA H100 80GB HBM3";

using Texts = std::vector<std::pair<const char*, std::string>>;

Device DeviceOf(const std::string& name, const Texts& texts) {
  std::vector<NamedAttribute> attributes;
  for (const auto& [key, text] : texts) {
    Attribute attribute;
    attribute.type = Attribute::Type::kString;
    attribute.text = dra::Name(text);
    attributes.emplace_back(dra::Name(key), attribute);
  }
  Device device;
  device.name = dra::Name(name);
  device.attributes = Interned<Attributes, AttributesHash>(Attributes(std::move(attributes)));
  return device;
}

Device Mig(const std::string& name, const std::string& profile,
           const std::string& product = kProduct) {
  return DeviceOf(
      name,
      {{"parentUUID", "GPU-a"}, {"productName", product}, {"profile", profile}, {"type", "mig"}});
}

ResourceSlice SliceOf(const std::string& driver = "gpu.nvidia.com") {
  ResourceSlice slice;
  slice.driver = dra::Name(driver);
  return slice;
}

// "3g.40gb@4 of GPU-a", "whole GPU-a", "unknown of GPU-a", "none".
std::string Read(const Device& device, const ResourceSlice& slice = SliceOf()) {
  GpuReader reader(gpu::Catalogue::Builtin());
  const auto read = reader.Read(slice, device);
  if (!read) return "none";
  EXPECT_EQ(read->model->name(), "H100-80GB");
  if (read->kind == GpuDevice::Kind::kWhole) return "whole " + read->gpu.str();
  const bool known = read->kind == GpuDevice::Kind::kInstance;
  return (known ? read->model->PlacementName(read->placement) : "unknown") + " of " +
         read->gpu.str();
}

TEST(GpuReaderTest, ReadsProfileAndStart) {
  EXPECT_EQ(Read(Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb")), "3g.40gb@4 of GPU-a");
  EXPECT_EQ(Read(Mig("gpu-0-mig-1g10gb-me-20-6", "1g.10gb+me")), "1g.10gb+me@6 of GPU-a");
  EXPECT_EQ(Read(Mig("gpu-0-mig-1g10gb-me-20-6", "1g.10gb.me")), "1g.10gb+me@6 of GPU-a");
}

TEST(GpuReaderTest, ReadsWholeGpus) {
  const Texts texts = {{"productName", kProduct}, {"type", "gpu"}, {"uuid", "GPU-a"}};
  EXPECT_EQ(Read(DeviceOf("gpu-0", texts)), "whole GPU-a");
  const Texts full = {{"gpu.nvidia.com/productName", kProduct},
                      {"gpu.nvidia.com/type", "gpu"},
                      {"gpu.nvidia.com/uuid", "GPU-a"}};
  EXPECT_EQ(Read(DeviceOf("anything", full)), "whole GPU-a");
}

TEST(GpuReaderTest, DoubtsWhatTheCatalogueDoesNotKnow) {
  EXPECT_EQ(Read(Mig("gpu-0-mig-3g40gb-9-2", "3g.40gb")), "unknown of GPU-a") << "no such start";
  EXPECT_EQ(Read(Mig("gpu-0-mig-9g99gb-9-0", "9g.99gb")), "unknown of GPU-a");
  for (const char* name :
       {"", "-", "gpu-0", "gpu-0-mig-", "gpu-0-mig-3g40gb-9-4x", "gpu-0-mig-x--",
        "gpu-0-mig-3g40gb-9-260", "gpu-0-mig-3g40gb-9-0x4", "gpu-0-3g40gb-9-4"}) {
    EXPECT_EQ(Read(Mig(name, "3g.40gb")), "unknown of GPU-a") << name;
  }
}

TEST(GpuReaderTest, IgnoresOtherDevices) {
  const Device device = Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb");
  EXPECT_EQ(Read(device, SliceOf("gpu.example.com")), "none");
  EXPECT_EQ(Read(DeviceOf("gpu-0", {})), "none");
  EXPECT_EQ(Read(DeviceOf("gpu-0", {{"productName", kProduct}, {"type", "vfio"}, {"uuid", "a"}})),
            "none");
  EXPECT_EQ(Read(DeviceOf("gpu-0", {{"productName", kProduct}, {"type", "gpu"}})), "none")
      << "no UUID";
  EXPECT_EQ(Read(Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb", "NVIDIA Q9000")), "none");
  EXPECT_EQ(Read(Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb", "")), "none");
  EXPECT_EQ(Read(Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb", "Tesla T4")), "none");
}

// Any driver may publish any number of products.
TEST(GpuReaderTest, ReadsManyProducts) {
  GpuReader reader(gpu::Catalogue::Builtin());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(reader.Read(SliceOf(), Mig("a-mig-0", "1g.10gb", "Q" + std::to_string(i))));
  }
  EXPECT_TRUE(reader.Read(SliceOf(), Mig("a-mig-0", "1g.10gb")));
}

TEST(GpuTableTest, NumbersGpusByUuid) {
  GpuTable table(std::make_shared<GpuReader>(gpu::Catalogue::Builtin()));
  const Texts other = {{"productName", kProduct}, {"type", "gpu"}, {"uuid", "GPU-b"}};
  table.Add(SliceOf(), Mig("gpu-0-mig-3g40gb-9-4", "3g.40gb"));
  table.Add(SliceOf("d"), Mig("gpu-0-mig-3g40gb-9-0", "3g.40gb"));
  table.Add(SliceOf(), DeviceOf("gpu-1", other));
  table.Add(SliceOf(), Mig("gpu-0-mig-3g40gb-9-0", "3g.40gb"));
  table.Add(SliceOf(), Mig("gpu-0-mig-3g20gb-9-0", "3g.20gb", "NVIDIA A100-SXM4-40GB"));
  EXPECT_EQ(table.rules().size(), 2U);
  EXPECT_EQ(table.at(0).gpu, table.at(3).gpu);
  EXPECT_NE(table.at(0).placement, table.at(3).placement);
  EXPECT_NE(table.at(0).gpu, table.at(2).gpu);
  EXPECT_EQ(table.at(2).placement, GpuPlace::kWhole);
  EXPECT_EQ(table.at(1).gpu, GpuPlace::kNoGpu);
  EXPECT_EQ(table.at(4).gpu, GpuPlace::kNoGpu) << "contradicts the first device of GPU-a";
}

}  // namespace
}  // namespace nos::dra
