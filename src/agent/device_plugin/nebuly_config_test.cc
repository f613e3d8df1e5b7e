#include "agent/nebuly_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::map<int64_t, std::string> kGpus = {{0, "GPU-a"}, {1, "GPU-b"}};

std::string Refusal(const std::string& text) {
  const auto read = ReadNebulyConfig(text, kGpus);
  if (read.ok()) return "taken";
  EXPECT_EQ(read.status().code(), Code::kInvalid);
  return read.status().message();
}
// A configuration with one entry of these fields.
std::string Config(const std::string& entry) {
  return "version: v1\nsharing: {mps: {resources: [{" + entry + "}]}}\n";
}

TEST(NebulyConfig, WritesFormatThatPluginReads) {
  EXPECT_EQ(WriteNebulyConfig({{{"GPU-a", 10}, 2}, {{"GPU-b", 10}, 2}, {{"GPU-b", 5}, 1}}),
            "version: v1\n"
            "flags:\n"
            "  migStrategy: none\n"
            "sharing:\n"
            "  mps:\n"
            "    failRequestsGreaterThanOne: true\n"
            "    resources:\n"
            "    - name: nvidia.com/gpu\n"
            "      rename: gpu-5gb\n"
            "      memoryGB: 5\n"
            "      replicas: 1\n"
            "      devices:\n"
            "      - \"GPU-b\"\n"
            "    - name: nvidia.com/gpu\n"
            "      rename: gpu-10gb\n"
            "      memoryGB: 10\n"
            "      replicas: 2\n"
            "      devices:\n"
            "      - \"GPU-a\"\n"
            "      - \"GPU-b\"\n");
}

TEST(NebulyConfig, ReadsBackWhatItWrites) {
  const std::vector<NebulyShares> all = {
      {}, {{{"GPU-a", 10}, 3}}, {{{"GPU-a", 10}, 3}, {{"GPU-b", 10}, 2}, {{"GPU-b", 19}, 1}}};
  for (const NebulyShares& shares : all) {
    const auto read = ReadNebulyConfig(WriteNebulyConfig(shares), kGpus);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, shares);
  }
}

// The plugin exits if the list of resources is empty.
TEST(NebulyConfig, OmitsSharingSectionWithoutShares) {
  EXPECT_THAT(WriteNebulyConfig({}), Not(HasSubstr("sharing")));
}

TEST(NebulyConfig, ReadsConfigurationOfGoVersion) {
  const auto read = ReadNebulyConfig(
      R"({"version":"v1","flags":{"migStrategy":"none"},"sharing":{"timeSlicing":{},"mps":{
         "failRequestsGreaterThanOne":true,"resources":[
         {"name":"nvidia.com/gpu","rename":"nvidia.com/gpu-10gb","memoryGB":10,"replicas":2,"devices":["0"]},
         {"name":"gpu","rename":"gpu-20gb","memoryGB":20,"replicas":1,"devices":[1,"GPU-a"]}]}}})",
      kGpus);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, (NebulyShares{{{"GPU-a", 10}, 2}, {{"GPU-a", 20}, 1}, {{"GPU-b", 20}, 1}}));
}

TEST(NebulyConfig, RejectsConfigurationThatIsNotPlainShares) {
  const std::string good =
      "name: nvidia.com/gpu, rename: gpu-10gb, memoryGB: 10, replicas: 2, devices: [GPU-a]";
  EXPECT_EQ(Refusal(Config(good)), "taken");
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string entry = good;
    entry.replace(entry.find(what), what.size(), instead);
    return Refusal(Config(entry));
  };
  EXPECT_EQ(with("GPU-a", "GPU-c"), "sharing.mps.resources: a device is none of the node's GPUs");
  EXPECT_EQ(with("GPU-a", "7"), "sharing.mps.resources: a device is none of the node's GPUs");
  EXPECT_THAT(with("[GPU-a]", "all"), HasSubstr("devices"));
  EXPECT_THAT(with("gpu-10gb", "gpu-20gb"), HasSubstr("called 'gpu-20gb'"));
  EXPECT_THAT(with("nvidia.com/gpu,", "nvidia.com/mig-1g.5gb,"), HasSubstr("called"));
  for (const char* number : {"0", "-1", "1000", "two", "1.5", "99999999999999999999"}) {
    EXPECT_THAT(with("replicas: 2", std::string("replicas: ") + number), HasSubstr("replicas"));
    EXPECT_THAT(with("memoryGB: 10", std::string("memoryGB: ") + number), HasSubstr("memoryGB"));
  }
  EXPECT_THAT(Refusal("version: v2"), HasSubstr("v1"));
  for (const char* text : {"", "[]", "a: 1\n---\nb: 2"}) {
    EXPECT_EQ(Refusal(text), "it is not one mapping") << text;
  }
  EXPECT_THAT(Refusal("sharing: {mps: {}}"), HasSubstr("missing"));
  EXPECT_THAT(Refusal("sharing: {mps: {resources: []}}"), HasSubstr("missing"));
  EXPECT_THAT(Refusal("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu}]}}"),
              HasSubstr("time slices"));
  EXPECT_THAT(Refusal(std::string(300'000, 'a')), HasSubstr("longer"));
}

TEST(NebulyKey, BelongsToExactlyOneNode) {
  const std::string key = NebulyKey("node-1", "text", 0);
  EXPECT_TRUE(key.starts_with("node-1_")) << key;
  EXPECT_EQ(key, NebulyKey("node-1", "text", 0));
  EXPECT_NE(key, NebulyKey("node-1", "texts", 0));
  EXPECT_NE(key, NebulyKey("node-1", "text", 1));
  EXPECT_TRUE(IsNebulyKeyOf("node-1", key));
  EXPECT_FALSE(IsNebulyKeyOf("node-10", key));
  EXPECT_FALSE(IsNebulyKeyOf("node", key));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", key + "0"));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", "default"));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", ""));
}

// The Go version took keys of node-10 for those of node-1.
TEST(NebulyKey, RecognisesKeysOfGoVersion) {
  EXPECT_TRUE(IsNebulyKeyOf("node-1", "node-1-1700000000"));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", "node-10-1700000000"));
  EXPECT_FALSE(IsNebulyKeyOf("node", "node-1-1700000000"));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", "node-1-"));
  EXPECT_FALSE(IsNebulyKeyOf("node-1", "node-1-mine"));
  EXPECT_FALSE(IsNebulyKeyOf("node", "node-1")) << "a key of another tool, named like another node";
}

// A label value has at most 63 bytes.
TEST(NebulyKey, FitsLabelLimitForLongNodeNames) {
  const std::string one(100, 'n'), two = one + "2", front(28, 'n');
  const std::string key = NebulyKey(one, "text", 0);
  EXPECT_LE(key.size(), 63u);
  EXPECT_TRUE(IsNebulyKeyOf(one, key));
  EXPECT_FALSE(IsNebulyKeyOf(two, key));
  EXPECT_FALSE(IsNebulyKeyOf(front, key));
  EXPECT_EQ(NebulyKey(std::string(46, 'n'), "text", 0).size(), 63u);
}

}  // namespace
}  // namespace nos::agent
