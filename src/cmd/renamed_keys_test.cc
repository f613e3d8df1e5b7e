// Every key of a configuration that has an older name is still read under it, with a warning.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/delivery.h"
#include "cmd/daemon/process.h"
#include "cmd/daemons/autoscaler_config.h"
#include "cmd/daemons/partitioner_config.h"
#include "cmd/telemetry/exports.h"

namespace nos::cmd {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kKind = "Test";

struct RenamedKey {
  std::vector<std::string> groups;
  std::string old_key, key;
  double value = 0;    // as it is now
  double another = 0;  // that the key may have
};

// Collects the renamed keys of a description. They are numbers or times.
class RenamedKeys final : public ConfigFields {
 public:
  void Group(std::string_view key, FunctionRef<void()> fields) override {
    groups_.emplace_back(key);
    fields();
    groups_.pop_back();
  }
  void Text(std::string_view key, std::string&, std::string_view) override { Refuse(key); }
  void Word(std::string_view key, std::string&, const std::vector<std::string>&,
            std::string_view) override {
    Refuse(key);
  }
  void Flag(std::string_view key, bool&, std::string_view) override { Refuse(key); }
  void Number(std::string_view key, int64_t& value, int64_t, int64_t most,
              std::string_view) override {
    Add(key, static_cast<double>(value), value < most ? 1 : -1);
  }
  void Seconds(std::string_view key, Duration& value, Duration, Duration most,
               std::string_view) override {
    Add(key, ToSeconds(value), value + std::chrono::seconds(1) <= most ? 1 : -1);
  }
  void Decimal(std::string_view key, int64_t&, int64_t, int64_t, std::string_view) override {
    Refuse(key);
  }
  void Texts(std::string_view key, std::map<std::string, std::string>&, std::string_view) override {
    Refuse(key);
  }
  void List(std::string_view key, size_t, FunctionRef<void(size_t)>, FunctionRef<void(size_t)>,
            std::string_view) override {
    Refuse(key);
  }
  void Renamed(std::string_view old_key, std::string_view key) override {
    keys_.push_back({groups_, std::string(old_key), std::string(key)});
  }
  void Retired(std::string_view, std::string_view) override {}

  const std::vector<RenamedKey>& keys() const { return keys_; }

 private:
  bool IsNext(std::string_view key) const {
    return !keys_.empty() && keys_.back().key == key && keys_.back().groups == groups_;
  }
  void Refuse(std::string_view key) const { EXPECT_FALSE(IsNext(key)) << key; }
  void Add(std::string_view key, double value, double step) {
    if (!IsNext(key)) return;
    keys_.back().value = value;
    keys_.back().another = value + step;
  }

  std::vector<std::string> groups_;
  std::vector<RenamedKey> keys_;
};

struct Case {
  std::string name;
  // Describes a new configuration with its defaults; both calls of one result describe the same.
  std::function<std::function<void(ConfigFields&)>()> make;
  std::vector<std::string> renamed;  // "old new", with their groups
};

template <typename Config, typename Describe>
auto Making(Describe describe) {
  return [describe] {
    auto config = std::make_shared<Config>();
    return [describe, config](ConfigFields& fields) { describe(fields, *config); };
  };
}

std::vector<RenamedKey> KeysOf(const std::function<void(ConfigFields&)>& describe) {
  RenamedKeys keys;
  describe(keys);
  return keys.keys();
}

std::string PathOf(const RenamedKey& key, const std::string& name) {
  std::vector<std::string> path = key.groups;
  path.push_back(name);
  return Join(path, ".");
}

std::string FileWith(const RenamedKey& key) {
  std::string text = fmt::format("apiVersion: {}\nkind: {}\n", kConfigVersion, kKind);
  std::string indent;
  for (const std::string& group : key.groups) {
    text += fmt::format("{}{}:\n", indent, group);
    indent += "  ";
  }
  return text + fmt::format("{}{}: {}\n", indent, key.old_key, key.another);
}

class RenamedKeysTest : public ::testing::TestWithParam<Case> {};

TEST_P(RenamedKeysTest, ReadsOldKeyIntoNewFieldWithWarning) {
  std::vector<std::string> renamed;
  for (const RenamedKey& key : KeysOf(GetParam().make())) {
    renamed.push_back(PathOf(key, key.old_key) + " " + PathOf(key, key.key));
    const std::function<void(ConfigFields&)> describe = GetParam().make();
    std::vector<std::string> warnings;
    const Status read = ReadConfig(FileWith(key), kKind, describe, warnings);
    ASSERT_TRUE(read.ok()) << read.message();
    EXPECT_THAT(warnings, ElementsAre(fmt::format("{} is deprecated: use {}",
                                                  PathOf(key, key.old_key), PathOf(key, key.key))));
    for (const RenamedKey& after : KeysOf(describe)) {
      if (PathOf(after, after.key) != PathOf(key, key.key)) continue;
      EXPECT_EQ(after.value, key.another) << key.key;
    }
  }
  EXPECT_EQ(renamed, GetParam().renamed);
}

INSTANTIATE_TEST_SUITE_P(
    All, RenamedKeysTest,
    ::testing::Values(
        Case{"partitioner",
             Making<PartitionerFile>(&DescribePartitioner),
             {"planBudgetSeconds planTimeoutSeconds", "answerDeadlineSeconds planAckTimeoutSeconds",
              "claimDeadlineSeconds sliceReservationTimeoutSeconds",
              "apiServer.burst apiServer.maxBurst"}},
        Case{"autoscaler",
             Making<AutoscalerFile>(&DescribeAutoscaler),
             {"planBudgetSeconds planTimeoutSeconds", "readPoolsSeconds poolSyncIntervalSeconds",
              "leastPatienceSeconds minProvisionTimeoutSeconds", "closeSeconds backoffSeconds",
              "longestCloseSeconds maxBackoffSeconds",
              "scaleDown.mostUsePercent scaleDown.utilizationThresholdPercent",
              "scaleDown.mostEmptied scaleDown.maxConcurrentDrains",
              "scaleDown.removalDeadlineSeconds scaleDown.removalTimeoutSeconds",
              "moves.mostPerPod moves.maxPerPod", "moves.perHour moves.maxPerHour",
              "moves.perNamespaceAndHour moves.maxPerNamespacePerHour",
              "relocations.holdDeadlineSeconds relocations.holdTimeoutSeconds",
              "relocations.drainDeadlineSeconds relocations.drainTimeoutSeconds",
              "relocations.successorDeadlineSeconds relocations.successorTimeoutSeconds",
              "relocations.evictAgainSeconds relocations.evictionRetrySeconds",
              "apiServer.burst apiServer.maxBurst"}},
        Case{"delivery", Making<DeliveryConfig>(&DescribeDelivery), {"spoolMiB maxSpoolMiB"}},
        Case{"exports",
             Making<ExportsConfig>(&DescribeExports),
             {"remoteWrite.shards remoteWrite.maxShards",
              "remoteWrite.samplesPerRequest remoteWrite.maxSamplesPerRequest"}}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace nos::cmd
