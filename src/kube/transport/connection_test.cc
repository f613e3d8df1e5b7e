#include "kube/connection.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace nos::kube {
namespace {

constexpr std::string_view kFile = R"(
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443/", certificate-authority-data: UEVN}
- name: insecure
  cluster: {server: "https://10.0.0.1", insecure-skip-tls-verify: true}
users:
- name: u
  user: {token: secret}
- name: e
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get-token, args: [a b]}}
contexts:
- name: one
  context: {cluster: c, user: u}
- name: two
  context: {cluster: insecure, user: u}
- name: three
  context: {cluster: c, user: e}
- name: four
  context: {cluster: missing, user: u}
)";

TEST(KubeconfigTest, ReadsTheCurrentContext) {
  const auto config = ParseKubeconfig(kFile, "", "");
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->ca.text, "PEM");
  EXPECT_EQ(config->token.text, "secret");
}

TEST(KubeconfigTest, FindsAPluginBesideTheFile) {
  const auto config = ParseKubeconfig(kFile, "three", "/etc/kube");
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  ASSERT_TRUE(config->exec.has_value());
  EXPECT_EQ(config->exec->command, "/etc/kube/./get-token");
  EXPECT_EQ(config->exec->arguments, std::vector<std::string>{"a b"});
}

TEST(KubeconfigTest, RefusesUnsafeOrMissingFields) {
  EXPECT_EQ(ParseKubeconfig(kFile, "two", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig(kFile, "four", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig(kFile, "none", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig("[]", "", "").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseKubeconfig("a: [", "", "").status().code(), Code::kInvalid);
}

TEST(KubeconfigTest, NamesAMissingFile) {
  const auto config = LoadConnection("/nonexistent/config", "");
  EXPECT_EQ(config.status().code(), Code::kNotFound);
  EXPECT_NE(config.status().message().find("/nonexistent/config"), std::string::npos);
}

// Gives each test its own files and environment variables.
class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() { std::filesystem::create_directories(folder_); }
  ~ConnectionTest() override {
    std::filesystem::remove_all(folder_);
    unsetenv("KUBECONFIG");  // NOLINT(concurrency-mt-unsafe): one thread
  }
  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // A connection whose plugin is this shell script.
  Connection WithPlugin(std::string_view script) {
    ConnectionConfig config;
    config.server = "https://c";
    config.exec.emplace();
    config.exec->api_version = "client.authentication.k8s.io/v1";
    config.exec->command = Write("plugin", "#!/bin/sh\n" + std::string(script));
    config.exec->environment = {{"WHO", "me"}};
    config.exec->install_hint = "install the plugin";
    return Connection(config);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("nos-connection-" + std::to_string(getpid()) +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ConnectionTest, MergesSeveralKubeconfigFiles) {
  const std::string first = Write("a", R"(
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}])");
  std::filesystem::create_directories(folder_ / "sub");
  const std::string second = Write("sub/b", R"(
current-context: y
clusters: [{name: c, cluster: {server: "https://h", certificate-authority: ca.crt}}]
users: [{name: u, user: {tokenFile: token}}])");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  setenv("KUBECONFIG", (first + ":" + (folder_ / "missing").string() + ":" + second).c_str(), 1);
  const auto config = LoadConnection("", "");
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->server, "https://h");
  EXPECT_EQ(config->ca.file, folder_ / "sub/ca.crt");
  EXPECT_EQ(config->token.file, folder_ / "sub/token");
}

TEST_F(ConnectionTest, RereadsTokenFileAfterRefusal) {
  ConnectionConfig config;
  config.token.file = Write("token", "one\n");
  Connection connection(config);
  EXPECT_EQ((*connection.Current())->token, "one");
  Write("token", "two\n");
  connection.Rejected();
  EXPECT_EQ((*connection.Current())->token, "two");
}

TEST_F(ConnectionTest, CachesPluginCredentialUntilExpiry) {
  Connection connection = WithPlugin(R"(
echo x >> "$0.count"
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
 "status":{"token":"'$WHO$(wc -l < "$0.count")'","expirationTimestamp":"2200-01-01T00:00:00Z"}}')");
  auto identity = connection.Current();
  ASSERT_TRUE(identity.ok()) << identity.status().ToString();
  EXPECT_EQ((*identity)->token, "me1");
  EXPECT_EQ((*connection.Current())->token, "me1");
  connection.Rejected();
  EXPECT_EQ((*connection.Current())->token, "me2");
}

TEST_F(ConnectionTest, RunsPluginAgainAfterExpiry) {
  Connection connection = WithPlugin(R"(
echo x >> "$0.count"
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
 "status":{"token":"'$(wc -l < "$0.count")'","expirationTimestamp":"2001-01-01T00:00:00Z"}}')");
  EXPECT_EQ((*connection.Current())->token, "1");
  EXPECT_EQ((*connection.Current())->token, "2");
}

TEST_F(ConnectionTest, ReportsPluginErrors) {
  for (const char* script :
       {"exit 3", "echo nonsense", R"(echo '{"kind":"ExecCredential","apiVersion":"v9"}')",
        R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}')",
        "kill -9 $$"}) {
    Connection connection = WithPlugin(script);
    const auto identity = connection.Current();
    EXPECT_EQ(identity.status().code(), Code::kPermission) << script;
  }
  Connection missing = WithPlugin("");
  std::filesystem::remove(folder_ / "plugin");
  EXPECT_EQ(missing.Current().status().code(), Code::kPermission);
}

}  // namespace
}  // namespace nos::kube
