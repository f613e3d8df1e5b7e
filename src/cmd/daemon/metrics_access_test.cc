#include "cmd/daemon/metrics_access.h"

#include <gtest/gtest.h>

#include <string>

#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

// An API server that knows the tokens "prometheus" and "visitor", of which the first may get
// /metrics.
class MetricsAccessTest : public ::testing::Test {
 protected:
  MetricsAccessTest() {
    api_.intercept = [this](const kube::ApiRequest& request) { return Answer(request); };
  }
  std::optional<Result<kube::ApiResponse>> Answer(const kube::ApiRequest& request) {
    ++asked_;
    if (down_) return Result<kube::ApiResponse>(Status(Code::kUnavailable, "connection refused"));
    Json body = request.body;
    JsonObject status;
    if (request.path.ends_with("/tokenreviews")) {
      const std::string token(FindString(body, "spec", "token"));
      status["authenticated"] = token == "prometheus" || token == "visitor";
      status["user"] = {{"username", token}, {"groups", JsonArray{"system:authenticated"}}};
    } else {
      EXPECT_TRUE(request.path.ends_with("/subjectaccessreviews")) << request.path;
      EXPECT_EQ(WriteJson(*Find(body, "spec", "nonResourceAttributes")),
                R"({"path":"/metrics","verb":"get"})");
      EXPECT_EQ(WriteJson(*Find(body, "spec", "groups")), R"(["system:authenticated"])");
      status["allowed"] = granted_ && FindString(body, "spec", "user") == "prometheus";
    }
    body.get_object()["status"] = std::move(status);
    return Result<kube::ApiResponse>(kube::ApiResponse{201, std::move(body), {}, {}});
  }
  int Ask(const std::string& header, const std::string& peer = "10.0.0.7") {
    net::HttpRequest request;
    request.peer = peer;
    if (!header.empty()) request.headers.emplace_back("authorization", header);
    const auto refusal = access_.Refuse(request);
    return refusal ? refusal->code : 200;
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  MetricsAccess access_{api_, clock_};
  bool down_ = false, granted_ = true;
  int asked_ = 0;
};

TEST_F(MetricsAccessTest, NeedsKnownTokenAndRight) {
  EXPECT_EQ(Ask(""), 401);
  EXPECT_EQ(Ask("Basic cHJvbWV0aGV1cw=="), 401);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(Ask("Bearer forged"), 401);
  EXPECT_EQ(Ask("Bearer visitor"), 403);
  EXPECT_EQ(Ask("Bearer prometheus"), 200);
}

TEST_F(MetricsAccessTest, AnswersAreCachedForAMinute) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask("Bearer prometheus"), 200);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask("Bearer visitor"), 403);
  EXPECT_EQ(asked_, 4);
  granted_ = false;
  clock_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(Ask("Bearer prometheus"), 403);
}

TEST_F(MetricsAccessTest, ReportsUnreachableApiServerAndCachesNoFault) {
  down_ = true;
  EXPECT_EQ(Ask("Bearer prometheus"), 503);
  down_ = false;
  EXPECT_EQ(Ask("Bearer prometheus"), 200);
}

TEST_F(MetricsAccessTest, GuessesAreLimited) {
  int guesses = 0;
  while (guesses < 100 && Ask("Bearer guess-" + std::to_string(guesses)) == 401) ++guesses;
  EXPECT_LT(guesses, 100);
  const int asked = asked_;
  EXPECT_EQ(Ask("Bearer another"), 429);
  EXPECT_EQ(asked_, asked);
  EXPECT_EQ(Ask("Bearer prometheus", "10.9.0.7"), 200) << "from another network";
}

}  // namespace
}  // namespace nos::cmd
