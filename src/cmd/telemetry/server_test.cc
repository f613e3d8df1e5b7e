#include "cmd/telemetry/server.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cmd/telemetry/server_probes.h"

namespace nos::cmd {
namespace {

class TelemetryServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("nos-telemetry-server-") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    config_.address = "127.0.0.1:0";
    config_.recorder.store.path = folder_ / "telemetry.db";
    config_.token_file = folder_ / "tokens";
    WriteTokens("prod 0123456789abcdef\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void WriteTokens(const std::string& text) const {
    std::ofstream(config_.token_file, std::ios::trunc) << text;
  }
  Result<std::unique_ptr<TelemetryServer>> Start() {
    return TelemetryServer::Start(config_, gpu::Catalogue::Builtin(), clock_, metrics_);
  }
  void ExpectRefused(std::string_view why) {
    const auto server = Start();
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.status().code(), Code::kInvalid);
    EXPECT_NE(server.status().message().find(why), std::string::npos) << server.status().message();
  }

  std::filesystem::path folder_;
  TelemetryServerConfig config_;
  SystemClock clock_;
  Metrics metrics_;
};

// After a crash the journal is replayed first.
TEST_F(TelemetryServerTest, ProbesAnswerBeforeStoreIsOpen) {
  std::unique_ptr<TelemetryServer> server;
  const auto probes = ServerProbes::Serve({"0", "0"}, metrics_);
  ASSERT_TRUE(probes.ok()) << probes.status().ToString();
  const auto code = [&](const std::string& target) {
    return (*probes)->probes().Answer({"GET", target, {}, ""}).code;
  };
  EXPECT_EQ(code("/healthz"), 200);
  EXPECT_EQ(code("/readyz"), 503);
  EXPECT_EQ(code("/metrics"), 200);
  auto started = Start();
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  server = *std::move(started);
  EXPECT_EQ(code("/readyz"), 503);
  (*probes)->Show(*server);
  EXPECT_EQ(code("/readyz"), 200);
}

TEST_F(TelemetryServerTest, RejectsConfigurationsWithOpenAccess) {
  config_.token_file = "";
  ExpectRefused("ingest.tokenFile or ingest.serviceAccounts is required");
  config_.token_file = folder_ / "tokens";
  config_.address = ":0";
  ExpectRefused("unencrypted");
  config_.sandbox = true;
  ExpectRefused("--sandbox grants access to all users of this machine");
  config_.sandbox = false;
  config_.certificate_file = "tls.crt";
  ExpectRefused("must be set together");
  config_.key_file = "tls.key";
  config_.service = "nos-telemetry";
  ExpectRefused("serviceName asks for an own certificate");
}

TEST_F(TelemetryServerTest, ReportersOfTheClusterNeedAnApiServer) {
  config_.readers.kubeconfig = folder_ / "none";
  config_.reporters.accounts = "nos/nos-operator";
  EXPECT_EQ(Start().status().code(), Code::kNotFound);
}

TEST_F(TelemetryServerTest, TokensOfReportersReadNothing) {
  config_.reporters.accounts = "nos/nos-mig-agent";
  config_.readers.audience = config_.reporters.audience;
  ExpectRefused("readers.audience: must differ from ingest.audience");
}

TEST_F(TelemetryServerTest, RejectsInvalidExportsAtStart) {
  config_.exports.remote_write.destination.url = "prometheus:9090";
  ExpectRefused("export.remoteWrite.url: must begin with https://");
  config_.exports.remote_write.destination.url = "https://prometheus/api/v1/write";
  config_.exports.remote_write.labels = "cluster=a";
  ExpectRefused("export.remoteWrite.externalLabels");
  config_.exports = {};
  config_.exports.clickhouse.destination.url = "http://clickhouse:8123";
  config_.exports.clickhouse.options.database = "a; DROP";
  ExpectRefused("export.clickHouse.database");
  config_.exports.clickhouse.options.database = "a";
  config_.exports.clickhouse.destination.username = "nos";
  config_.exports.clickhouse.destination.password_file = "p";
  ExpectRefused("require https");
  config_.exports = {};
  config_.exports.walkai.destination.url = "https://walkai/cluster/insights";
  ExpectRefused("export.walkai.cluster");
}

TEST_F(TelemetryServerTest, RejectsInvalidPricesAtStart) {
  config_.prices.rules = {{.per_gpu_hour = 1}};
  ExpectRefused("currency");
  config_.prices.currency = "EUR";
  config_.prices.rules.push_back({.model = "L4"});
  ExpectRefused("prices[1]");
  config_.prices.rules.back().per_gpu_hour = 0;
  EXPECT_TRUE(Start().ok());
}

TEST_F(TelemetryServerTest, ServesSafeAndSandboxConfigurations) {
  EXPECT_TRUE(Start().ok()) << "on loopback, with tokens";
  config_.address = ":0";
  config_.plaintext = true;
  EXPECT_TRUE(Start().ok()) << "behind a proxy";
  config_ = {};
  config_.address = "127.0.0.1:0";
  config_.recorder.store.path = folder_ / "telemetry.db";
  config_.sandbox = true;
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_GT((*server)->port(), 0);
  EXPECT_TRUE((*server)->Ready().ok());
}

TEST_F(TelemetryServerTest, APublishedSandboxListensOnEveryAddress) {
  config_.token_file = "";
  config_.address = "0.0.0.0:0";
  config_.sandbox = true;
  ExpectRefused("--sandbox grants access to all users of this machine");
  config_.published = true;
  EXPECT_TRUE(Start().ok());
}

TEST_F(TelemetryServerTest, KeepsTokensIfReloadFails) {
  const auto server = Start();
  ASSERT_TRUE(server.ok());
  WriteTokens("prod short\n");
  const Status read = (*server)->ReadTokens();
  EXPECT_EQ(read.code(), Code::kInvalid);
  EXPECT_EQ(read.message().find("short"), std::string::npos) << "the message contains no token";
  WriteTokens("* fedcba9876543210\n");
  EXPECT_TRUE((*server)->ReadTokens().ok());
}

TEST_F(TelemetryServerTest, PrintedConfigCanBeRead) {
  const auto describe = [&](ConfigFields& f) { DescribeTelemetryServer(f, config_); };
  config_.recorder.retention.raw = 13 * telemetryserver::kHour;
  config_.prices = {
      "EUR", "of 2026", {{.per_gpu_hour = 2'500'000, .node_labels = {{"a", "b"}}}, {}}};
  const std::string text = PrintConfig("TelemetryConfig", describe);
  config_ = {};
  std::vector<std::string> warnings;
  ASSERT_TRUE(ReadConfig(text, "TelemetryConfig", describe, warnings).ok());
  EXPECT_EQ(config_.recorder.retention.raw, 13 * telemetryserver::kHour);
  EXPECT_EQ(config_.recorder.retention.events, 400 * telemetryserver::kDay);
  ASSERT_EQ(config_.prices.rules.size(), 2U);
  EXPECT_EQ(config_.prices.rules[0].per_gpu_hour, 2'500'000);
  EXPECT_EQ(config_.prices.rules[0].node_labels.at("a"), "b");
}

}  // namespace
}  // namespace nos::cmd
