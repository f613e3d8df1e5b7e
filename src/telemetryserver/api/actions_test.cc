#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "telemetryserver/api.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

class FakeActions final : public Actions {
 public:
  Can Of(const Reader&) const override { return {.what_if = true, .submit = true}; }
  Result<std::string> WhatIf(ActionCall& call) override {
    ++asked;
    call.subject = "team-1/p";
    if (during) during();
    if (!error.ok()) return error;
    return "{\"fits\":true,\"text\":" + WriteJson(Json(call.pod)) + "}";
  }
  Result<std::string> Submit(ActionCall& call) override {
    ++submitted;
    call.subject = "team-1/p";
    if (!error.ok()) return error;
    return std::string(R"({"namespace":"team-1","name":"p"})");
  }
  Status error;
  std::function<void()> during;
  int asked = 0, submitted = 0;
};

class ApiActionsTest : public RecorderFixture {
 protected:
  void SetUp() override {
    RecorderFixture::SetUp();
    Open();
    ingest_ = std::make_unique<Ingest>(*recorder_, nullptr, metrics_);
    audit_ = *Audit::Open(folder_ / "audit.log", 1 << 20);
    limits_ = std::make_unique<Limits>(LimitOptions{});
    Serve();
    Report({1, 1, 1}, 0, 1);
  }
  void TearDown() override {
    api_.reset();
    ingest_.reset();
    RecorderFixture::TearDown();
  }
  void Serve() {
    Api::Parts parts{*recorder_,
                     *ingest_,
                     hub_,
                     gpu::Catalogue::Builtin(),
                     metrics_,
                     [this](const net::HttpRequest&) -> Result<Reader> {
                       if (!unknown_.ok()) return unknown_;
                       return Reader{"kim", false, {"team-1"}};
                     },
                     false,
                     "test"};
    parts.actions = &actions_;
    parts.limits = limits_.get();
    parts.audit = audit_.get();
    parts.sign_in = "login";
    api_ = std::make_unique<Api>(std::move(parts));
  }
  net::HttpResponse Post(const std::string& name, const std::string& body,
                         net::HttpHeaders headers = {{"x-nos-csrf", "1"},
                                                     {"content-type", "application/json"}}) {
    net::HttpRequest request{"POST", "/api/v1/" + name, std::move(headers), body};
    request.peer = "10.0.0.7";
    return api_->Answer(request);
  }
  net::HttpResponse Get(const std::string& name, const std::string& peer = "10.0.0.7") {
    net::HttpRequest request{"GET", "/api/v1/" + name, {{"authorization", "Bearer x"}}, ""};
    request.peer = peer;
    return api_->Answer(request);
  }
  std::string AuditLog() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "audit.log").rdbuf();
    return text.str();
  }

  Status unknown_;
  FakeActions actions_;
  StreamHub hub_{std::chrono::milliseconds(1)};
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<Audit> audit_;
  std::unique_ptr<Limits> limits_;
  std::unique_ptr<Api> api_;
};

const std::string kPod = R"({"cluster":"prod","pod":"kind: Pod"})";

TEST_F(ApiActionsTest, AnswersWhatIfAndSubmit) {
  const auto asked = Post("what-if", kPod);
  EXPECT_EQ(asked.code, 200) << asked.body;
  EXPECT_EQ(asked.body, R"({"fits":true,"text":"kind: Pod"})");
  const auto submitted = Post("submit", R"({"pod":"kind: Pod"})");
  EXPECT_EQ(submitted.body, R"({"namespace":"team-1","name":"p"})");
  EXPECT_NE(AuditLog().find(R"("action":"submit","who":"kim","from":"10.0.0.7","cluster":"prod",)"
                            R"("what":"team-1/p","outcome":"done")"),
            std::string::npos)
      << AuditLog();
  EXPECT_NE(Get("session").body.find(R"("can":{"submit":true,"what_if":true)"), std::string::npos);
}

TEST_F(ApiActionsTest, RejectsRequestsOfOtherSites) {
  const net::HttpHeaders json = {{"content-type", "application/json"}};
  EXPECT_EQ(Post("submit", kPod, json).code, 403);
  EXPECT_EQ(Post("submit", kPod, {{"x-nos-csrf", "1"}, {"content-type", "text/plain"}}).code, 415);
  net::HttpHeaders headers = {{"x-nos-csrf", "1"}, {"content-type", "application/json"}};
  headers.emplace_back("sec-fetch-site", "cross-site");
  EXPECT_EQ(Post("submit", kPod, headers).code, 403);
  headers.back() = {"origin", "https://evil.example"};
  EXPECT_EQ(Post("what-if", kPod, headers).code, 403);
  EXPECT_EQ(Get("submit").code, 405);
  EXPECT_NE(AuditLog().find(R"("action":"what-if","who":"","from":"10.0.0.7")"), std::string::npos);
  EXPECT_EQ(actions_.asked + actions_.submitted, 0);
}

TEST_F(ApiActionsTest, RejectsInvalidPods) {
  EXPECT_EQ(Post("what-if", "").code, 400);
  EXPECT_EQ(Post("what-if", "{}").code, 400);
  EXPECT_EQ(Post("what-if", R"({"pod":{}})").code, 400);
  EXPECT_EQ(Post("what-if", R"({"pod":"x","cluster":"other"})").code, 404);
  EXPECT_EQ(Post("what-if", R"({"pod":")" + std::string(300 << 10, 'x') + "\"}").code, 413);
  EXPECT_EQ(Post("what-if", std::string(1 << 20, '[')).code, 413);
  EXPECT_EQ(actions_.asked, 0);
}

TEST_F(ApiActionsTest, PassesOnErrorsOfCluster) {
  const std::pair<Code, int> codes[] = {{Code::kPermission, 403},    {Code::kInvalid, 400},
                                        {Code::kAlreadyExists, 409}, {Code::kUnimplemented, 501},
                                        {Code::kUnavailable, 503},   {Code::kDeadline, 504}};
  for (const auto& [code, http] : codes) {
    actions_.error = Status(code, "pods \"p\" is forbidden: exceeded quota");
    const auto answer = Post("submit", kPod);
    EXPECT_EQ(answer.code, http);
    EXPECT_NE(answer.body.find("exceeded quota"), std::string::npos);
  }
  EXPECT_NE(AuditLog().find(R"("outcome":"refused","why":"pods \"p\" is forbidden)"),
            std::string::npos);
}

TEST_F(ApiActionsTest, LimitsActionsPerReader) {
  actions_.during = [&] {
    actions_.during = nullptr;
    const auto second = Post("what-if", kPod);
    EXPECT_EQ(second.code, 429) << second.body;
  };
  EXPECT_EQ(Post("what-if", kPod).code, 200);
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto answer = Post("what-if", kPod);
    if (answer.code != 429) continue;
    ++refused;
    EXPECT_TRUE(std::ranges::any_of(answer.headers, [](const auto& header) {
      return header.first == "Retry-After" && header.second == "2";
    }));
  }
  EXPECT_EQ(refused, 12);
  EXPECT_EQ(Get("session").code, 200) << "reading is not limited";
  clock_.Set(telemetry::kReportStart + 60'000);
  EXPECT_EQ(Post("what-if", kPod).code, 200);
}

TEST_F(ApiActionsTest, LimitsRequestsPerAddress) {
  int refused = 0;
  unknown_ = Status(Code::kPermission, "who are you?");
  for (int i = 0; i < 300; ++i) refused += Get("session").code == 429 ? 1 : 0;
  EXPECT_EQ(refused, 50);
  EXPECT_EQ(Get("session", "10.0.0.8").code, 401) << "other readers are not affected";
}

TEST_F(ApiActionsTest, UnauthenticatedAnswerNamesSignIn) {
  unknown_ = Status(Code::kPermission, "who are you?");
  const auto answer = Get("session");
  EXPECT_EQ(answer.code, 401);
  EXPECT_EQ(answer.body, "{\"error\":\"who are you?\",\"sign_in\":\"login\"}\n");
  EXPECT_NE(AuditLog().find(R"("action":"sign-in","who":"","from":"10.0.0.7")"), std::string::npos);
  EXPECT_EQ(AuditLog().find("Bearer"), std::string::npos);
  unknown_ = Status(Code::kExhausted, "too many failed attempts");
  EXPECT_EQ(Get("session").code, 429);
  unknown_ = Status(Code::kUnavailable, "the API server does not answer");
  EXPECT_EQ(Get("session").code, 503);
}

}  // namespace
}  // namespace nos::telemetryserver
