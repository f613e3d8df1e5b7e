#include "sim/protobuf.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace nos::sim {
namespace {

std::string Field(int number, std::string_view bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         std::string(bytes);
}

std::string Number(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string Envelope(std::string_view version, std::string_view kind, std::string_view raw) {
  return std::string("k8s\0", 4) + Field(1, Field(1, version) + Field(2, kind)) + Field(2, raw);
}

std::string SamplePod() {
  const std::string limit = Field(1, "cpu") + Field(2, Field(1, "500m"));
  const std::string port = Number(3, 80) + Field(1, "");
  const std::string container =
      Field(1, "c") + Field(2, "i") + Field(6, port) + Field(8, Field(1, limit)) + Field(3, "run");
  const std::string volume = Field(1, "v") + Field(2, Field(2, ""));
  const std::string spec = Field(2, container) + Field(1, volume) + Number(4, 0);
  const std::string label = Field(1, "a") + Field(2, "b");
  const std::string metadata = Field(1, "p") + Field(11, label) + Field(8, "");
  return Envelope("v1", "Pod", Field(1, metadata) + Field(2, spec) + Field(3, ""));
}

TEST(ProtobufTest, ReadsAPod) {
  const auto pod = DecodeProtobuf(SamplePod());
  ASSERT_TRUE(pod.ok()) << pod.status().ToString();
  EXPECT_EQ(*pod, ParseJson(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"p","labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],
                             "resources":{"limits":{"cpu":"500m"}},"command":["run"]}],
              "volumes":[{"name":"v","emptyDir":{}}],"terminationGracePeriodSeconds":0},
      "status":{}})")
                      .value())
      << WriteJson(*pod);
}

TEST(ProtobufTest, ReadsSecretsTimesAndIntOrStrings) {
  const auto secret =
      DecodeProtobuf(Envelope("v1", "Secret", Field(2, Field(1, "k") + Field(2, "\xff"))));
  ASSERT_TRUE(secret.ok());
  EXPECT_EQ(FindString(*secret, "data", "k"), "/w==");
  const auto budget = DecodeProtobuf(Envelope("policy/v1", "PodDisruptionBudget",
                                              Field(2, Field(1, Number(1, 1) + Field(3, "50%")))));
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(FindString(*budget, "spec", "minAvailable"), "50%");
  const auto lease = DecodeProtobuf(
      Envelope("coordination.k8s.io/v1", "Lease", Field(2, Field(4, Number(1, 60)))));
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(FindString(*lease, "spec", "renewTime"), "1970-01-01T00:01:00.000000Z");
}

TEST(ProtobufTest, SurvivesRandomBytes) {
  EXPECT_FALSE(DecodeProtobuf("").ok());
  EXPECT_FALSE(DecodeProtobuf("{}").ok());
  EXPECT_FALSE(DecodeProtobuf(Envelope("v1", "Unheard", "")).ok());
  const std::string good = SamplePod();
  for (size_t size = 0; size < good.size(); ++size) (void)DecodeProtobuf(good.substr(0, size));
  Random random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) {
      bytes[4 + random.Below(bytes.size() - 4)] = static_cast<char>(random.Next());
    }
    (void)DecodeProtobuf(bytes);
  }
}

TEST(ProtobufTest, RefusesTextThatIsNotUtf8) {
  const auto pod = [](std::string_view name, std::string_view label) {
    const std::string entry = Field(1, label) + Field(2, "b");
    return DecodeProtobuf(Envelope("v1", "Pod", Field(1, Field(1, name) + Field(11, entry))));
  };
  EXPECT_TRUE(pod("a", "b").ok());
  EXPECT_EQ(pod("a\xf0", "b").status().code(), Code::kInvalid);
  EXPECT_EQ(pod("a", "\xff").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::sim
