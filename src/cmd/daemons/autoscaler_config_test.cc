#include "cmd/daemons/autoscaler_config.h"

#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

class AutoscalerConfigTest : public ::testing::Test {
 protected:
  Status Read(const std::string& text) {
    std::vector<std::string> warnings;
    const Status read = ReadConfig(
        "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: AutoscalerConfig\n" + text,
        kAutoscalerKind, [&](ConfigFields& f) { DescribeAutoscaler(f, file_); }, warnings);
    return read.ok() ? CheckAutoscaler(file_) : read;
  }
  AutoscalerFile file_;
};

TEST_F(AutoscalerConfigTest, DefaultsMatchController) {
  ASSERT_TRUE(Read("").ok());
  const controllers::AutoscalerConfig defaults, options = OptionsOf(file_);
  EXPECT_EQ(options.utilization_threshold, defaults.utilization_threshold);
  EXPECT_EQ(options.max_concurrent_drains, defaults.max_concurrent_drains);
  EXPECT_EQ(options.max_moves_per_pod, defaults.max_moves_per_pod);
  EXPECT_EQ(options.max_moves_per_hour, defaults.max_moves_per_hour);
  EXPECT_EQ(options.max_moves_per_namespace, defaults.max_moves_per_namespace);
  EXPECT_EQ(options.settle, defaults.settle);
  EXPECT_TRUE(options.shrink);
  EXPECT_FALSE(options.moves);
}

TEST_F(AutoscalerConfigTest, PassesAllFieldsToController) {
  const Status read = Read(
      "objective: memory\nsettleSeconds: 1.5\n"
      "scaleDown: {enabled: false, afterSeconds: 60, utilizationThresholdPercent: 25, "
      "maxConcurrentDrains: 1}\n"
      "moves: {enabled: true, maxPerPod: 2, maxPerHour: 7, maxPerNamespacePerHour: 3}\n"
      "relocations: {localStorage: true, drainTimeoutSeconds: 30m}\n"
      "placeholders: {namespace: places, formerNamespace: nos, hostPorts: false, image: 'nos:2', "
      "demandPriorityClass: low, priorityClass: places}\n"
      "provisioningRequests: false\n");
  ASSERT_TRUE(read.ok()) << read.message();
  const controllers::AutoscalerConfig options = OptionsOf(file_);
  EXPECT_EQ(options.objective, planning::Objective::kMemory);
  EXPECT_EQ(options.settle, std::chrono::milliseconds(1500));
  EXPECT_FALSE(options.shrink);
  EXPECT_EQ(options.shrink_after, std::chrono::minutes(1));
  EXPECT_EQ(options.utilization_threshold, 0.25);
  EXPECT_EQ(options.max_concurrent_drains, 1);
  EXPECT_TRUE(options.moves);
  EXPECT_EQ(options.max_moves_per_pod, 2);
  EXPECT_EQ(options.max_moves_per_hour, 7);
  EXPECT_EQ(options.max_moves_per_namespace, 3);
  EXPECT_TRUE(options.relocations.rules.local_storage);
  EXPECT_EQ(options.relocations.drain_timeout, std::chrono::minutes(30));
  EXPECT_EQ(options.relocations.ns, "places");
  EXPECT_EQ(options.signal.ns, "places");
  EXPECT_EQ(options.relocations.former_ns, "nos");
  EXPECT_EQ(options.signal.former_ns, "nos");
  EXPECT_FALSE(options.relocations.rules.host_ports);
  EXPECT_EQ(options.relocations.image, "nos:2");
  EXPECT_EQ(options.signal.command, (std::vector<std::string>{"nos", "hold"}));
  EXPECT_EQ(options.signal.priority_class, "low");
  EXPECT_EQ(options.relocations.priority_class, "places");
  EXPECT_FALSE(options.signal.provisioning_requests);
}

TEST_F(AutoscalerConfigTest, RejectsInconsistentFieldsWithKey) {
  EXPECT_NE(Read("backoffSeconds: 600\nlongestCloseSeconds: 60").message().find("maxBackoff"),
            std::string::npos);
  file_ = {};
  EXPECT_NE(
      Read("moves: {maxPerHour: 2, maxPerNamespacePerHour: 3}").message().find("maxPerNamespace"),
      std::string::npos);
  file_ = {};
  EXPECT_NE(Read("webhook: {tokenFile: /t}").message().find("webhook.tokenFile"),
            std::string::npos);
  file_ = {};
  EXPECT_FALSE(Read("leaderElection: {leaseDuration: 1, renewDeadline: 2}").ok());
  EXPECT_FALSE(Read("scaleDown: {utilizationThresholdPercent: 101}").ok());
}

TEST_F(AutoscalerConfigTest, AdjustsDefaultsToSingleSetField) {
  Status read = Read("moves: {maxPerHour: 3}");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(OptionsOf(file_).max_moves_per_hour, 3);
  EXPECT_EQ(OptionsOf(file_).max_moves_per_namespace, 3);
  file_ = {};
  read = Read("moves: {maxPerHour: 100}");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(OptionsOf(file_).max_moves_per_namespace, 5);
  file_ = {};
  read = Read("backoffSeconds: 7200");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(OptionsOf(file_).max_backoff, std::chrono::hours(2));
  file_ = {};
  read = Read("maxBackoffSeconds: 60");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(OptionsOf(file_).backoff, std::chrono::minutes(1));
  EXPECT_EQ(OptionsOf(file_).max_backoff, std::chrono::minutes(1));
}

TEST_F(AutoscalerConfigTest, PrintedConfigCanBeRead) {
  ASSERT_TRUE(
      Read("scaleDown: {utilizationThresholdPercent: 25}\nwebhook: {urlPrefix: 'https://h/'}")
          .ok());
  const std::string printed =
      PrintConfig(kAutoscalerKind, [&](ConfigFields& f) { DescribeAutoscaler(f, file_); });
  file_ = {};
  std::vector<std::string> warnings;
  const Status read = ReadConfig(
      printed, kAutoscalerKind, [&](ConfigFields& f) { DescribeAutoscaler(f, file_); }, warnings);
  ASSERT_TRUE(read.ok()) << read.message() << "\n" << printed;
  EXPECT_EQ(file_.utilization_threshold_percent, 25);
  EXPECT_EQ(file_.webhook.prefix, "https://h/");
}

}  // namespace
}  // namespace nos::cmd
