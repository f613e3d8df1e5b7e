#include "cmd/query/telemetry_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/wake_signal.h"
#include "cmd/telemetry/server.h"

namespace nos::cmd {
namespace {

class TelemetryClientTest : public ::testing::Test {
 protected:
  TelemetryClientTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("nos-telemetry-client-") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("token", "a-token-of-ours");
    Write("kubeconfig",
          "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
          "clusters: [{name: c, cluster: {server: 'https://api:6443'}}]\n"
          "users: [{name: u, user: {token: of-the-cluster}}]\n"
          "contexts: [{name: c, context: {cluster: c, user: u}}]\n");
  }
  ~TelemetryClientTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string File(const std::string& name) const { return folder_ / name; }

  std::filesystem::path folder_;
  TelemetryFlags flags_;
};

TEST_F(TelemetryClientTest, SendsTokensOnlyToSafeServers) {
  flags_.kubeconfig = File("kubeconfig");
  auto connection = TelemetryConnection(flags_);
  ASSERT_TRUE(connection.ok());
  EXPECT_TRUE(connection->token.empty()) << "plain text needs none";
  flags_.server = "https://telemetry.example.com/below/";
  flags_.ca_file = "ca.crt";
  connection = TelemetryConnection(flags_);
  ASSERT_TRUE(connection.ok()) << connection.status().ToString();
  EXPECT_EQ(connection->server, "https://telemetry.example.com/below");
  EXPECT_EQ(connection->token.text, "of-the-cluster");
  EXPECT_EQ(connection->ca.file, "ca.crt");
  flags_.token_file = File("token");
  EXPECT_EQ(TelemetryConnection(flags_)->token.file, File("token"));
  flags_.server = "http://telemetry.example.com";
  EXPECT_FALSE(TelemetryConnection(flags_).ok());
  flags_.server = "http://localhost:8090";
  EXPECT_EQ(TelemetryConnection(flags_)->token.file, File("token"));
  flags_.server = "telemetry.example.com";
  EXPECT_FALSE(TelemetryConnection(flags_).ok());
}

TEST_F(TelemetryClientTest, UnreachableServerGivesRemedy) {
  flags_.server = "http://127.0.0.1:1";
  auto client = TelemetryClient::For(flags_);
  ASSERT_TRUE(client.ok());
  const auto answer = client->Get("gpus");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("nos sandbox"), std::string::npos);
}

TEST_F(TelemetryClientTest, ReadsFromServer) {
  TelemetryServerConfig config;
  config.address = "127.0.0.1:0";
  config.sandbox = true;
  config.recorder.store.path = File("telemetry.db");
  const SystemClock clock;
  Metrics metrics;
  auto server = TelemetryServer::Start(config, gpu::Catalogue::Builtin(), clock, metrics);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  flags_.server = "http://127.0.0.1:" + std::to_string((*server)->port());
  auto client = TelemetryClient::For(flags_);
  ASSERT_TRUE(client.ok());
  const auto session = client->Get("session");
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_EQ(FindString(*session, "user"), "sandbox");
  const auto gpus = client->Get("gpus");
  EXPECT_EQ(gpus.status().code(), Code::kNotFound) << "no report received yet";
  WakeSignal bell;
  const auto stream = client->Stream([&] { bell.Ring(); });
  while (!stream->Ended()) bell.Wait(std::chrono::seconds(30));
  EXPECT_EQ(stream->error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace nos::cmd
