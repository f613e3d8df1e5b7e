#include "cmd/access/reader_access.h"

#include <gtest/gtest.h>

#include "identity/base64url.h"
#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

// An API server with two users: "admin-token" sees everything, "team-token" sees namespace team-a.
class ReaderAccessTest : public ::testing::Test {
 protected:
  ReaderAccessTest() {
    api_.intercept = [this](const kube::ApiRequest& request) { return Answer(request); };
  }
  std::optional<Result<kube::ApiResponse>> Answer(const kube::ApiRequest& request) {
    ++asked_;
    if (down_) return Result<kube::ApiResponse>(Status(Code::kUnavailable, "connection refused"));
    Json body = request.body;
    if (request.path.ends_with("/tokenreviews")) {
      const std::string_view token = FindString(body, "spec", "token");
      const Json* audiences = Find(body, "spec", "audiences");
      if (audiences != nullptr) {
        const Json wanted = *audiences;
        return ReviewFor(wanted, std::string(token), std::move(body));
      }
      const bool known = token == "admin-token" || token == "team-token";
      body.get_object()["status"] = {{"authenticated", known},
                                     {"user", {{"username", token}, {"groups", {"g"}}}}};
    } else {
      EXPECT_TRUE(request.path.ends_with("/subjectaccessreviews"));
      EXPECT_EQ(WriteJson(*Find(body, "spec", "groups")), R"(["g"])");
      const std::string_view verb = FindString(body, "spec", "resourceAttributes", "verb");
      EXPECT_TRUE(verb == "list" || (creates_ && verb == "create"));
      const bool admin = FindString(body, "spec", "user") == "admin-token";
      const bool own = FindString(body, "spec", "resourceAttributes", "namespace") == "team-a";
      body.get_object()["status"] = {{"allowed", admin || own}};
    }
    return Result<kube::ApiResponse>(kube::ApiResponse{201, std::move(body), {}, {}});
  }
  // A token with an audience is known for this audience only.
  static Result<kube::ApiResponse> ReviewFor(const Json& audiences, const std::string& token,
                                             Json body) {
    const bool known = token == TokenFor("nos-telemetry-readers");
    body.get_object()["status"] = {{"authenticated", known},
                                   {"audiences", audiences},
                                   {"user", {{"username", "team-token"}, {"groups", {"g"}}}}};
    return kube::ApiResponse{201, std::move(body), {}, {}};
  }
  static std::string TokenFor(const std::string& audience) {
    const auto part = [](const Json& json) { return identity::EncodeBase64Url(WriteJson(json)); };
    return part({{"alg", "RS256"}}) + "." + part({{"iss", "cluster"}, {"aud", {audience}}}) + "." +
           identity::EncodeBase64Url("signature");
  }
  Result<telemetryserver::Reader> Of(const std::string& authorization) {
    net::HttpRequest request;
    if (!authorization.empty()) request.headers.emplace_back("authorization", authorization);
    return access_.Of(request, "10.0.0.7");
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  ReaderAccess access_{api_, clock_, [] { return std::set<std::string>{"team-a", "team-b"}; }, {}};
  bool down_ = false, creates_ = false;
  int asked_ = 0;
};

TEST_F(ReaderAccessTest, RightToListAllPodsShowsEverything) {
  const auto reader = Of("Bearer admin-token");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ(reader->user, "admin-token");
  EXPECT_TRUE(reader->may_all);
}

TEST_F(ReaderAccessTest, OtherReadersSeeTheirNamespaces) {
  const auto reader = Of("Bearer team-token");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_FALSE(reader->may_all);
  EXPECT_TRUE(reader->May("team-a"));
  EXPECT_FALSE(reader->May("team-b"));
}

TEST_F(ReaderAccessTest, RejectsMissingAndUnknownTokens) {
  EXPECT_EQ(Of("").status().code(), Code::kPermission);
  EXPECT_EQ(Of("Basic YTpi").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Of("Bearer forged").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(Of("Bearer forged").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 1) << "guesses cause no requests to the API server";
}

// Such a token is worth nothing to an intruder in this server.
TEST_F(ReaderAccessTest, TokenForThisServerReadsAndDoesNotAct) {
  const auto reader = Of("Bearer " + TokenFor("nos-telemetry-readers"));
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_TRUE(reader->May("team-a"));
  EXPECT_FALSE(reader->May("team-b"));
  EXPECT_FALSE(reader->has_cluster_token) << "the API server does not take it";
  EXPECT_EQ(Of("Bearer " + TokenFor("nos-telemetry")).status().code(), Code::kPermission)
      << "a reporter's token reads nothing";
}

TEST_F(ReaderAccessTest, TokensForApiServerCountOnlyIfAllowed) {
  EXPECT_TRUE(Of("Bearer team-token")->has_cluster_token);
  ReaderAccess strict(api_, clock_, [] { return std::set<std::string>{"team-a"}; },
                      {.cluster_tokens = false});
  const auto of = [&](const std::string& token) {
    return strict.Of({"GET", "/", {{"authorization", "Bearer " + token}}, ""}, "10.0.0.7");
  };
  asked_ = 0;
  const auto refused = of("team-token");
  EXPECT_EQ(refused.status().code(), Code::kPermission);
  EXPECT_NE(refused.status().message().find("--audience nos-telemetry-readers"), std::string::npos);
  EXPECT_EQ(asked_, 0) << "it is not even passed on";
  EXPECT_TRUE(of(TokenFor("nos-telemetry-readers")).ok());
}

TEST_F(ReaderAccessTest, RevokedRightEndsWithinMinute) {
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  const int before = asked_;
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  EXPECT_EQ(asked_, before);
  clock_.Advance(std::chrono::seconds(61));
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  EXPECT_GT(asked_, before);
}

TEST_F(ReaderAccessTest, ForgedTokensCostFewReviewsAndBlockNoOtherReader) {
  telemetryserver::Limits limits({.failures_per_minute = 10});
  ReaderAccess access(api_, clock_, [] { return std::set<std::string>{"team-a"}; },
                      {.limits = &limits});
  const auto of = [&](const std::string& token, const std::string& address) {
    return access.Of({"GET", "/", {{"authorization", "Bearer " + token}}, ""}, address)
        .status()
        .code();
  };
  EXPECT_EQ(of("admin-token", "10.0.0.7"), Code::kOk);
  asked_ = 0;
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    refused += of("forged-" + std::to_string(i), "10.0.0.7") == Code::kExhausted ? 1 : 0;
  }
  EXPECT_EQ(asked_, 10);
  EXPECT_EQ(refused, 990);
  EXPECT_EQ(of("team-token", "10.0.0.7"), Code::kExhausted)
      << "new tokens from this address must wait";
  EXPECT_EQ(of("team-token", "10.0.0.8"), Code::kOk);
  clock_.Advance(std::chrono::seconds(70));
  for (int i = 0; i < 20; ++i) (void)of("again-" + std::to_string(i), "10.0.0.7");
  EXPECT_EQ(of("admin-token", "10.0.0.7"), Code::kOk)
      << "a token that was valid before is accepted";
  // Failures from many addresses together.
  asked_ = 0;
  for (int i = 0; i < 1000; ++i) {
    (void)of("other-" + std::to_string(i), "192.0.2." + std::to_string(i % 250));
  }
  EXPECT_LE(asked_, 2 * 50) << "limits for addresses with and without recent failures";
}

TEST_F(ReaderAccessTest, FailuresOfFewAddressesBlockNoOtherAddress) {
  telemetryserver::Limits limits({.failures_per_minute = 10});
  ReaderAccess access(api_, clock_, [] { return std::set<std::string>{"team-a"}; },
                      {.limits = &limits});
  const auto of = [&](const std::string& token, const std::string& address) {
    return access.Of({"GET", "/", {{"authorization", "Bearer " + token}}, ""}, address)
        .status()
        .code();
  };
  for (int i = 0; i < 200; ++i) {
    (void)of("forged-" + std::to_string(i), "192.0.2." + std::to_string(i % 10));
  }
  EXPECT_EQ(of("admin-token", "10.0.0.7"), Code::kOk);
}

TEST_F(ReaderAccessTest, ReviewsCreateRightOnlyIfConfigured) {
  creates_ = true;
  ReaderAccess access(api_, clock_, [] { return std::set<std::string>{"team-a", "team-b"}; },
                      {.ask_create = true});
  const auto reader =
      access.Of({"GET", "/", {{"authorization", "Bearer team-token"}}, ""}, "10.0.0.7");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_TRUE(reader->may_create);
  EXPECT_TRUE(access.MayCreate(*reader, "team-a").value_or(false));
  EXPECT_FALSE(access.MayCreate(*reader, "team-b").value_or(true));
}

TEST_F(ReaderAccessTest, UnreachableApiServerRejectsAllReaders) {
  down_ = true;
  EXPECT_EQ(Of("Bearer admin-token").status().code(), Code::kUnavailable);
  down_ = false;
  EXPECT_TRUE(Of("Bearer admin-token").ok()) << "a failed review is not cached";
}

}  // namespace
}  // namespace nos::cmd
