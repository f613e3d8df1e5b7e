#include "cmd/reader_access.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

// An API server that knows two users: "admin-token" sees everything, "team-token" the namespace
// team-a.
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
      const bool known = token == "admin-token" || token == "team-token";
      body.get_object()["status"] = {{"authenticated", known},
                                     {"user", {{"username", token}, {"groups", {"g"}}}}};
    } else {
      EXPECT_TRUE(request.path.ends_with("/subjectaccessreviews"));
      EXPECT_EQ(WriteJson(*Find(body, "spec", "groups")), R"(["g"])");
      EXPECT_EQ(FindString(body, "spec", "resourceAttributes", "verb"), "list");
      const bool admin = FindString(body, "spec", "user") == "admin-token";
      const bool own = FindString(body, "spec", "resourceAttributes", "namespace") == "team-a";
      body.get_object()["status"] = {{"allowed", admin || own}};
    }
    return Result<kube::ApiResponse>(kube::ApiResponse{201, std::move(body), {}, {}});
  }
  Result<telemetry::Reader> Of(const std::string& authorization) {
    net::HttpRequest request;
    if (!authorization.empty()) request.headers.emplace_back("authorization", authorization);
    return access_.Of(request);
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  ReaderAccess access_{api_, clock_, [] { return std::set<std::string>{"team-a", "team-b"}; }};
  bool down_ = false;
  int asked_ = 0;
};

TEST_F(ReaderAccessTest, WhoMayListAllPodsSeesEverything) {
  const auto reader = Of("Bearer admin-token");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ(reader->user, "admin-token");
  EXPECT_TRUE(reader->may_all);
}

TEST_F(ReaderAccessTest, OthersSeeTheirNamespaces) {
  const auto reader = Of("Bearer team-token");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_FALSE(reader->may_all);
  EXPECT_TRUE(reader->May("team-a"));
  EXPECT_FALSE(reader->May("team-b"));
}

TEST_F(ReaderAccessTest, NobodyWithoutATokenThatTheClusterKnows) {
  EXPECT_EQ(Of("").status().code(), Code::kPermission);
  EXPECT_EQ(Of("Basic YTpi").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Of("Bearer forged").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(Of("Bearer forged").status().code(), Code::kPermission);
  EXPECT_EQ(asked_, 1) << "guessing costs the API server nothing";
}

TEST_F(ReaderAccessTest, WhatIsTakenFromAReaderIsGoneWithinAMinute) {
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  const int before = asked_;
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  EXPECT_EQ(asked_, before);
  clock_.Advance(std::chrono::seconds(61));
  ASSERT_TRUE(Of("Bearer admin-token").ok());
  EXPECT_GT(asked_, before);
}

TEST_F(ReaderAccessTest, AnApiServerThatDoesNotAnswerLetsNobodyIn) {
  down_ = true;
  EXPECT_EQ(Of("Bearer admin-token").status().code(), Code::kUnavailable);
  down_ = false;
  EXPECT_TRUE(Of("Bearer admin-token").ok()) << "that is not remembered";
}

}  // namespace
}  // namespace nos::cmd
