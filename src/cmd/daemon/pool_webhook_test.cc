#include "cmd/daemon/pool_webhook.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "net/http_server.h"

namespace nos::cmd {
namespace {

// A webhook that returns scripted answers and records the last request.
class PoolWebhookTest : public ::testing::Test {
 protected:
  PoolWebhookTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("nos-pool-webhook-") + test->name());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "token") << "sesame\n";
    auto server = net::HttpServer::Start({}, [this](const net::HttpRequest& request) {
      const std::scoped_lock lock(mutex_);
      last_ = request;
      ++calls_;
      net::HttpResponse response;
      response.code = code_;
      response.headers = headers_;
      response.body = body_;
      return response;
    });
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    base_ = "http://127.0.0.1:" + std::to_string(server_->port());
    config_.prefix = base_ + "/";
  }
  ~PoolWebhookTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  Result<std::string> Call(std::string_view method, const std::string& url,
                           const std::string& body = "") {
    return PoolWebhookCaller(config_, [this] { return leads_; })(method, url, body);
  }

  // Answer to all later requests.
  void Answer(int code, const std::string& body, const net::HttpHeaders& headers = {}) {
    const std::scoped_lock lock(mutex_);
    code_ = code;
    body_ = body;
    headers_ = headers;
  }
  net::HttpRequest Last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  std::string HeaderOfLast(std::string_view name) { return std::string(Last().Header(name)); }
  int Calls() {
    const std::scoped_lock lock(mutex_);
    return calls_;
  }

  std::filesystem::path folder_;
  std::mutex mutex_;
  net::HttpRequest last_;
  int calls_ = 0, code_ = 200;
  net::HttpHeaders headers_;
  std::string body_ = R"({"replicas":4})", base_;
  bool leads_ = true;
  PoolWebhookConfig config_;
  std::unique_ptr<net::HttpServer> server_;
};

TEST_F(PoolWebhookTest, CallsNothingWithoutPrefix) {
  config_.prefix = "";
  for (const char* method : {"GET", "POST"}) {
    const Status status = Call(method, base_ + "/pools/a").status();
    EXPECT_EQ(status.code(), Code::kPermission);
    EXPECT_EQ(status.message(), std::string(method) + " " + base_ +
                                    "/pools/a: no address is called, because webhook.urlPrefix is "
                                    "empty in the configuration of nos autoscaler");
  }
  EXPECT_EQ(Calls(), 0);
}

TEST_F(PoolWebhookTest, SendsGetAndPostToUrlAsWritten) {
  const auto read = Call("GET", base_ + "/pools/a%2Fb?zone=eu-1a");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, R"({"replicas":4})");
  EXPECT_EQ(Last().method, "GET");
  EXPECT_EQ(Last().target, "/pools/a%2Fb?zone=eu-1a");
  EXPECT_EQ(HeaderOfLast("authorization"), "");

  Answer(204, "");
  const auto posted = Call("POST", base_ + "/pools", R"({"replicas":3})");
  ASSERT_TRUE(posted.ok()) << posted.status().ToString();
  EXPECT_EQ(*posted, "");
  EXPECT_EQ(Last().method, "POST");
  EXPECT_EQ(Last().body, R"({"replicas":3})");
  EXPECT_EQ(HeaderOfLast("content-type"), "application/json");
}

TEST_F(PoolWebhookTest, SendsTokenOnlyToUrlsWithPrefix) {
  config_ = {.prefix = base_ + "/ours/", .token_file = folder_ / "token", .ca_file = {}};
  ASSERT_TRUE(CheckPoolWebhook(config_).ok());
  ASSERT_TRUE(Call("GET", base_ + "/ours/a").ok());
  EXPECT_EQ(HeaderOfLast("authorization"), "Bearer sesame");
  EXPECT_EQ(Call("GET", base_ + "/theirs").status().code(), Code::kPermission);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(PoolWebhookTest, RejectsUrlsThatLeaveThePrefix) {
  config_ = {.prefix = base_ + "/ours/", .token_file = folder_ / "token", .ca_file = {}};
  for (const char* way : {"../theirs", "a/../../theirs", "%2e%2E/theirs", "..%2ftheirs",
                          "%252e%252e/theirs", "..;x/theirs", ".."}) {
    EXPECT_EQ(Call("GET", base_ + "/ours/" + way).status().code(), Code::kPermission) << way;
  }
  EXPECT_EQ(Calls(), 0);
  for (const char* fine : {"a..b", "...", "a%2Fb", "a?next=/../b"}) {
    EXPECT_TRUE(Call("GET", base_ + "/ours/" + fine).ok()) << fine;
  }
}

TEST_F(PoolWebhookTest, ErrorContainsAnswerOfWebhook) {
  Answer(409, "somebody else has changed it");
  const Status refused = Call("POST", base_ + "/", "{}").status();
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_EQ(refused.message(),
            "POST " + base_ + "/: the webhook answered 409: somebody else has changed it");
  Answer(503, "");
  EXPECT_EQ(Call("GET", base_ + "/").status().code(), Code::kUnavailable);
}

TEST_F(PoolWebhookTest, DoesNotFollowRedirects) {
  Answer(302, "", {{"Location", "file:///etc/passwd"}});
  EXPECT_FALSE(Call("GET", base_ + "/").ok());
  Answer(302, "", {{"Location", base_ + "/other"}});
  EXPECT_FALSE(Call("GET", base_ + "/").ok());
  EXPECT_EQ(Calls(), 2);
}

TEST_F(PoolWebhookTest, EndlessAnswerIsError) {
  Answer(200, std::string(65 << 10, ' '));
  EXPECT_EQ(Call("GET", base_ + "/").status().code(), Code::kUnavailable);
}

TEST_F(PoolWebhookTest, NonLeaderSendsGetButNoPost) {
  leads_ = false;
  EXPECT_TRUE(Call("GET", base_ + "/").ok());
  EXPECT_EQ(Call("POST", base_ + "/", "{}").status().code(), Code::kUnavailable);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(PoolWebhookTest, UnreachableWebhookIsError) {
  server_.reset();
  EXPECT_EQ(Call("GET", base_ + "/").status().code(), Code::kUnavailable);
}

TEST(PoolWebhookConfigTest, RejectsConfigThatWouldLeakToken) {
  const auto check = [](const std::string& prefix, const std::string& token) {
    return CheckPoolWebhook({.prefix = prefix, .token_file = token, .ca_file = {}}).ok();
  };
  EXPECT_TRUE(check("", ""));
  EXPECT_TRUE(check("http://hooks.example/", ""));
  EXPECT_TRUE(check("https://hooks.example:8443/nos/", "token"));
  EXPECT_TRUE(check("http://127.0.0.1:1/", "token"));
  EXPECT_FALSE(check("", "token"));
  EXPECT_FALSE(check("http://hooks.example/", "token"));
  EXPECT_FALSE(check("https://hooks.example", "token"))
      << "https://hooks.example.org has that prefix";
  EXPECT_FALSE(check("https://user@hooks.example/", ""));
  EXPECT_FALSE(check("https:///", ""));
  EXPECT_FALSE(check("ftp://hooks.example/", ""));
  EXPECT_FALSE(check("hooks.example/", ""));
}

}  // namespace
}  // namespace nos::cmd
