#include "cmd/access/reporter_access.h"

#include <gtest/gtest.h>

#include <optional>

#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

// An API server that knows the tokens "agent", "operator", "visitor" and, bound to nodes,
// "agent@n1" and "operator@n1" for the audience nos-telemetry, and "admin" for itself alone.
class ReporterAccessTest : public ::testing::Test {
 protected:
  ReporterAccessTest() {
    api_.intercept = [this](const kube::ApiRequest& request) { return Answer(request); };
  }
  std::optional<Result<kube::ApiResponse>> Answer(const kube::ApiRequest& request) {
    ++asked_;
    if (down_) return Result<kube::ApiResponse>(Status(Code::kUnavailable, "connection refused"));
    EXPECT_TRUE(request.path.ends_with("/tokenreviews"));
    Json body = request.body;
    EXPECT_EQ(WriteJson(*Find(body, "spec", "audiences")), R"(["nos-telemetry"])");
    const std::string token(FindString(body, "spec", "token"));
    JsonObject status{{"authenticated", token != "admin" && token != "forged"}};
    const std::string account = token.substr(0, token.find('@'));
    if (account == "agent" || account == "operator" || token == "visitor" || token == "old") {
      status["user"] = {{"username", "system:serviceaccount:nos:" + account}};
      if (account != token) {
        status["user"].get_object()["extra"] = {
            {"authentication.kubernetes.io/pod-name", {"p"}},
            {"authentication.kubernetes.io/node-name", {token.substr(account.size() + 1)}}};
      }
      if (token == "old") status["user"] = {{"username", "system:serviceaccount:nos:agent"}};
    }
    // A server that does not know audiences answers without them.
    if (token != "old") status["audiences"] = JsonArray{"nos-telemetry"};
    body.get_object()["status"] = std::move(status);
    return Result<kube::ApiResponse>(kube::ApiResponse{201, std::move(body), {}, {}});
  }
  static net::HttpRequest With(const std::string& token) {
    net::HttpRequest request;
    if (!token.empty()) request.headers.emplace_back("authorization", "Bearer " + token);
    return request;
  }
  Status CheckAll(const std::string& token, const std::string& cluster, const std::string& source) {
    telemetry::Envelope envelope;
    envelope.cluster = cluster;
    envelope.source = source;
    return access_.Check(With(token), "10.0.0.7", &envelope);
  }
  Code Check(const std::string& token, const std::string& cluster = "prod") {
    return CheckAll(token, cluster, "cluster").code();
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  telemetryserver::Limits limits_{{}};
  ReporterAccess access_{api_,
                         clock_,
                         {.accounts = {"nos/operator"},
                          .node_accounts = {"nos/agent"},
                          .audience = "nos-telemetry",
                          .cluster = "prod",
                          .limits = &limits_}};
  bool down_ = false;
  int asked_ = 0;
};

TEST_F(ReporterAccessTest, TheseAccountsDeliverForTheirCluster) {
  EXPECT_EQ(Check("operator"), Code::kOk);
  EXPECT_EQ(Check("operator@n1"), Code::kOk);
  EXPECT_EQ(Check("operator", "other"), Code::kPermission);
  EXPECT_EQ(Check("visitor"), Code::kPermission);
  EXPECT_TRUE(access_.Check(With("operator"), "10.0.0.7", nullptr).ok());
  EXPECT_TRUE(access_.Check(With("agent@n1"), "10.0.0.7", nullptr).ok());
}

TEST_F(ReporterAccessTest, TokenOfNodeDeliversForItsNodeAlone) {
  EXPECT_TRUE(CheckAll("agent@n1", "prod", "node/n1").ok());
  for (const char* other : {"node/n2", "node/n11", "node/", "cluster", "n1", ""}) {
    const Status refused = CheckAll("agent@n1", "prod", other);
    EXPECT_EQ(refused.code(), Code::kPermission) << other;
    EXPECT_NE(refused.message().find("a token of node \"n1\""), std::string::npos);
  }
  EXPECT_EQ(CheckAll("agent@n1", "other", "node/n1").code(), Code::kPermission);
  EXPECT_EQ(CheckAll("agent", "prod", "node/n1").code(), Code::kPermission) << "bound to no node";
  EXPECT_EQ(CheckAll("agent@", "prod", "node/").code(), Code::kPermission);
}

TEST_F(ReporterAccessTest, TokensMustBeForThisServer) {
  EXPECT_EQ(Check(""), Code::kPermission);
  EXPECT_EQ(Check("forged"), Code::kPermission);
  EXPECT_EQ(Check("admin"), Code::kPermission) << "a token for the API server";
  EXPECT_EQ(Check("old"), Code::kPermission) << "reviewed without an audience";
}

TEST_F(ReporterAccessTest, AnswersAreCachedForAMinute) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Check("operator"), Code::kOk);
  EXPECT_EQ(asked_, 1);
  clock_.Advance(std::chrono::seconds(61));
  down_ = true;
  EXPECT_EQ(Check("operator"), Code::kUnavailable)
      << "a revoked token counts for a minute, not more";
  down_ = false;
  EXPECT_EQ(Check("operator"), Code::kOk);
}

TEST_F(ReporterAccessTest, GuessesAreLimitedAndKnownReportersAreNot) {
  EXPECT_EQ(Check("operator"), Code::kOk);
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const Code code = Check("forged");
    EXPECT_TRUE(code == Code::kPermission || code == Code::kExhausted);
    clock_.Advance(std::chrono::milliseconds(1));
    refused += Check("admin" + std::to_string(i)) == Code::kExhausted ? 1 : 0;
  }
  EXPECT_GT(refused, 50);
  clock_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(Check("operator"), Code::kOk);
}

TEST(ReporterOptionsTest, NamesOfAccounts) {
  const auto options = ReporterAccess::OptionsOf(
      {.accounts = "nos/operator, nos/other", .node_accounts = "nos/agent"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->accounts, (std::set<std::string>{"nos/operator", "nos/other"}));
  EXPECT_EQ(options->node_accounts, (std::set<std::string>{"nos/agent"}));
  for (const char* wrong : {"agent", "/agent", "nos/", "a/b/c", "nos/agent,,x/y"}) {
    EXPECT_EQ(ReporterAccess::OptionsOf({.accounts = wrong}).status().code(), Code::kInvalid)
        << wrong;
    EXPECT_EQ(ReporterAccess::OptionsOf({.node_accounts = wrong}).status().code(), Code::kInvalid)
        << wrong;
  }
  EXPECT_EQ(ReporterAccess::OptionsOf({.accounts = "a/b", .node_accounts = "a/b"}).status().code(),
            Code::kInvalid);
  EXPECT_EQ(ReporterAccess::OptionsOf({.accounts = "a/b", .audience = ""}).status().code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace nos::cmd
