#include "cmd/access/reporter_access.h"

#include <gtest/gtest.h>

#include <optional>

#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

// An API server that knows the tokens "agent", "operator" and "visitor" for the audience
// nos-telemetry, and "admin" for itself alone.
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
    if (token == "agent" || token == "operator" || token == "visitor" || token == "old") {
      status["user"] = {{"username", "system:serviceaccount:nos:" + token}};
      if (token == "old") status["user"] = {{"username", "system:serviceaccount:nos:agent"}};
    }
    // A server that does not know audiences answers without them.
    if (token != "old") status["audiences"] = JsonArray{"nos-telemetry"};
    body.get_object()["status"] = std::move(status);
    return Result<kube::ApiResponse>(kube::ApiResponse{201, std::move(body), {}, {}});
  }
  Code Check(const std::string& token, std::string_view cluster = "prod") {
    net::HttpRequest request;
    if (!token.empty()) request.headers.emplace_back("authorization", "Bearer " + token);
    return access_.Check(request, "10.0.0.7", cluster).code();
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  telemetryserver::Limits limits_{{}};
  ReporterAccess access_{api_,
                         clock_,
                         {.accounts = {"nos/agent", "nos/operator"},
                          .audience = "nos-telemetry",
                          .cluster = "prod",
                          .limits = &limits_}};
  bool down_ = false;
  int asked_ = 0;
};

TEST_F(ReporterAccessTest, TheseAccountsDeliverForTheirCluster) {
  EXPECT_EQ(Check("agent"), Code::kOk);
  EXPECT_EQ(Check("operator"), Code::kOk);
  EXPECT_EQ(Check("agent", ""), Code::kOk);
  EXPECT_EQ(Check("agent", "other"), Code::kPermission);
  EXPECT_EQ(Check("visitor"), Code::kPermission);
}

TEST_F(ReporterAccessTest, TokensMustBeForThisServer) {
  EXPECT_EQ(Check(""), Code::kPermission);
  EXPECT_EQ(Check("forged"), Code::kPermission);
  EXPECT_EQ(Check("admin"), Code::kPermission) << "a token for the API server";
  EXPECT_EQ(Check("old"), Code::kPermission) << "reviewed without an audience";
}

TEST_F(ReporterAccessTest, AnswersAreCachedForAMinute) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Check("agent"), Code::kOk);
  EXPECT_EQ(asked_, 1);
  clock_.Advance(std::chrono::seconds(61));
  down_ = true;
  EXPECT_EQ(Check("agent"), Code::kUnavailable) << "a revoked token counts for a minute, not more";
  down_ = false;
  EXPECT_EQ(Check("agent"), Code::kOk);
}

TEST_F(ReporterAccessTest, GuessesAreLimitedAndKnownReportersAreNot) {
  EXPECT_EQ(Check("agent"), Code::kOk);
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const Code code = Check("forged");
    EXPECT_TRUE(code == Code::kPermission || code == Code::kExhausted);
    clock_.Advance(std::chrono::milliseconds(1));
    net::HttpRequest request;
    request.headers.emplace_back("authorization", "Bearer admin" + std::to_string(i));
    refused += access_.Check(request, "10.0.0.7", "prod").code() == Code::kExhausted ? 1 : 0;
  }
  EXPECT_GT(refused, 50);
  clock_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(Check("agent"), Code::kOk);
}

TEST(ReporterOptionsTest, NamesOfAccounts) {
  const auto options = ReporterAccess::OptionsOf({.accounts = "nos/agent, nos/operator"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->accounts, (std::set<std::string>{"nos/agent", "nos/operator"}));
  for (const char* wrong : {"agent", "/agent", "nos/", "a/b/c", "nos/agent,,x/y"}) {
    EXPECT_EQ(ReporterAccess::OptionsOf({.accounts = wrong}).status().code(), Code::kInvalid)
        << wrong;
  }
  EXPECT_EQ(ReporterAccess::OptionsOf({.accounts = "a/b", .audience = ""}).status().code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace nos::cmd
