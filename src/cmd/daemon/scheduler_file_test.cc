#include "cmd/daemon/scheduler_file.h"
#include "scheduling/framework.h"

#include <gtest/gtest.h>

#include <fstream>

namespace nos::cmd {
namespace {

const std::string kKube =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const std::string kOwn = "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: SchedulerConfig\n";
const scheduling::ConfigurationUse kUse{.default_name = "nos-scheduler"};

std::string ErrorOf(const Result<SchedulerFile>& file) {
  return file.ok() ? "" : file.status().message();
}

TEST(SchedulerFileTest, EachDocumentIsOptional) {
  const auto nothing = ParseSchedulerFile("", kUse);
  ASSERT_TRUE(nothing.ok()) << ErrorOf(nothing);
  EXPECT_EQ(nothing->configuration.profiles.front().scheduler_name, "nos-scheduler");
  const auto kube = ParseSchedulerFile(kKube + "podMaxBackoffSeconds: 30\n", kUse);
  ASSERT_TRUE(kube.ok()) << ErrorOf(kube);
  EXPECT_EQ(kube->configuration.queue.max_pause, std::chrono::seconds(30));
  const auto own = ParseSchedulerFile(kOwn + "logLevel: debug\n", kUse);
  ASSERT_TRUE(own.ok()) << ErrorOf(own);
  EXPECT_EQ(own->own.daemon.log_level, "debug");
  EXPECT_EQ(own->configuration.profiles.size(), 1u);
  const auto both = ParseSchedulerFile(
      kOwn + "metrics: {bindAddress: ':1'}\n---\n" + kKube +
          "clientConnection: {qps: 20, burst: 30}\nleaderElection: {resourceName: l}\n",
      kUse);
  ASSERT_TRUE(both.ok()) << ErrorOf(both);
  EXPECT_EQ(both->own.daemon.addresses.metrics, ":1");
  EXPECT_EQ(HttpOptionsOf(*both).requests_per_second, 20);
  EXPECT_EQ(HttpOptionsOf(*both).burst, 30);
  EXPECT_EQ(LeaderConfigOf(both->configuration).lease_name, "l");
}

TEST(SchedulerFileTest, ErrorsNameKindAndKey) {
  EXPECT_EQ(ErrorOf(ParseSchedulerFile(kOwn + "apiServer: {burst: 5}\n", kUse)),
            "SchedulerConfig: apiServer.burst: unknown field");
  EXPECT_EQ(ErrorOf(ParseSchedulerFile(kKube + "parallelism: -1\n", kUse)),
            "KubeSchedulerConfiguration: parallelism: must be at least 1");
  EXPECT_EQ(ErrorOf(ParseSchedulerFile(kKube + "---\n" + kKube, kUse)),
            "found two documents of kind KubeSchedulerConfiguration");
  EXPECT_EQ(ErrorOf(ParseSchedulerFile("kind: Pod", kUse)),
            "expected documents of kind KubeSchedulerConfiguration and SchedulerConfig, found "
            "'Pod'");
}

TEST(SchedulerFileTest, SimulationReadsOnlyKubeSchedulerConfiguration) {
  const auto file = ParseSchedulerFile(kOwn + "what: ever\n---\n" + kKube + "profiles: [{}]",
                                       {.simulates = true});
  ASSERT_TRUE(file.ok()) << ErrorOf(file);
  EXPECT_EQ(file->configuration.profiles.front().scheduler_name, "nos-scheduler");
  const auto other = ParseSchedulerFile(kKube + "profiles: [{}]", {.simulates = true});
  ASSERT_TRUE(other.ok()) << ErrorOf(other);
  EXPECT_EQ(other->configuration.profiles.front().scheduler_name, "default-scheduler");
}

// Schedulers other than nos scheduler ignore quotas unless their configuration enables them.
TEST(SchedulerFileTest, SimulatedNosSchedulerUsesQuotas) {
  const auto has_quotas = [](const std::string& text) {
    const auto file = ParseSchedulerFile(text, {.simulates = true});
    return file.ok() && file->configuration.profiles.front().framework->quotas() != nullptr;
  };
  EXPECT_FALSE(has_quotas(""));
  EXPECT_FALSE(has_quotas(kKube + "profiles: [{schedulerName: x}]"));
  EXPECT_TRUE(has_quotas(kKube + "profiles: [{schedulerName: nos-scheduler}]"));
  EXPECT_TRUE(has_quotas(kOwn));
  EXPECT_TRUE(has_quotas(kKube +
                         "profiles: [{schedulerName: x, plugins: {preFilter: {enabled: [{name: "
                         "CapacityScheduling}]}}}]"));
}

TEST(SchedulerFileTest, ListsProfilesThatPartitionGpus) {
  const std::string path = ::testing::TempDir() + "/scheduler.yaml";
  const auto partitioning = [&](const std::string& text) {
    std::ofstream(path) << text;
    const auto names = PartitioningProfiles(path);
    EXPECT_TRUE(names.ok());
    return names.ok() ? std::vector<std::string>(names->begin(), names->end())
                      : std::vector<std::string>();
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(partitioning(kOwn), Names{"nos-scheduler"});
  EXPECT_EQ(partitioning(kKube + "profiles: [{schedulerName: nos-scheduler}]"),
            Names());  // the file is for another scheduler
  EXPECT_EQ(partitioning(kOwn + "---\n" + kKube +
                         "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: "
                         "{disabled: [{name: GpuPartitioning}]}}}]"),
            Names{"a"});
  EXPECT_EQ(partitioning(kOwn + "---\n" + kKube +
                         "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: "
                         "{disabled: [{name: GpuCutting}]}}}]"),
            Names{"a"})
      << "the former name of GpuPartitioning";
  EXPECT_EQ(partitioning(kOwn + "what: ever"), Names());
}

TEST(SchedulerFileTest, PrintedFileCanBeRead) {
  const auto file = ParseSchedulerFile(
      kOwn + "logLevel: warn\n---\n" + kKube + "profiles: [{schedulerName: x}]", kUse);
  ASSERT_TRUE(file.ok()) << ErrorOf(file);
  const std::string printed = PrintSchedulerFile(*file);
  const auto again = ParseSchedulerFile(printed, kUse);
  ASSERT_TRUE(again.ok()) << ErrorOf(again);
  EXPECT_EQ(PrintSchedulerFile(*again), printed);
  EXPECT_EQ(again->own.daemon.log_level, "warn");
}

TEST(SchedulerFileTest, NamesSettingsThatNeedRestart) {
  const auto at = [](const std::string& text) { return ParseSchedulerFile(text, kUse).value(); };
  const SchedulerFile before = at("");
  EXPECT_EQ(NeedsRestart(before, at(kKube + "profiles: [{schedulerName: x}]")), "");
  EXPECT_EQ(NeedsRestart(before, at(kKube + "clientConnection: {qps: 1}\n---\n" + kOwn +
                                    "logLevel: error\n")),
            "clientConnection, SchedulerConfig");
  EXPECT_EQ(NeedsRestart(before, at(kKube + "leaderElection: {leaderElect: false}")),
            "leaderElection");
}

}  // namespace
}  // namespace nos::cmd
