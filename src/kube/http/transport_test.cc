#include "kube/http_transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/wake_signal.h"
#include "kube/client.h"
#include "net/http_server.h"

namespace nos::kube {
namespace {

using net::HttpRequest;
using net::HttpResponse;
using std::chrono::seconds;

HttpResponse Answer(int code, std::string body, net::HttpHeaders headers = {}) {
  HttpResponse response;
  response.code = code;
  response.body = std::move(body);
  response.headers = std::move(headers);
  return response;
}

// Lines that the test writes and the client reads as a watch.
class Tap {
 public:
  void Write(std::string_view line) {
    const std::scoped_lock lock(mutex_);
    text_ += line;
    if (wake_) std::exchange(wake_, nullptr)();
  }
  void End() {
    ended_ = true;
    Write("");
  }
  bool Read(std::string& out) {
    const std::scoped_lock lock(mutex_);
    out += std::exchange(text_, "");
    return !ended_;
  }
  void OnReady(std::function<void()> wake) {
    const std::scoped_lock lock(mutex_);
    if (ended_ || !text_.empty()) return wake();
    wake_ = std::move(wake);
  }
  void Forget() {
    const std::scoped_lock lock(mutex_);
    wake_ = nullptr;
    left.Ring();
  }

  WakeSignal left;  // rung when the client has disconnected

 private:
  std::mutex mutex_;
  std::string text_;
  std::function<void()> wake_;
  std::atomic<bool> ended_ = false;
};

class TapStream final : public net::BodyStream {
 public:
  explicit TapStream(Tap& tap) : tap_(tap) {}
  ~TapStream() override { tap_.Forget(); }
  bool Read(std::string& out) override { return tap_.Read(out); }
  void OnReady(std::function<void()> wake) override { tap_.OnReady(std::move(wake)); }

 private:
  Tap& tap_;
};

class HttpTransportTest : public testing::Test {
 protected:
  HttpTransportTest() {
    server_ = *net::HttpServer::Start({}, [this](const HttpRequest& request) {
      const std::scoped_lock lock(mutex_);
      seen_.push_back(request);
      return answer_(request);
    });
    config_.server = "http://127.0.0.1:" + std::to_string(server_->port());
  }
  ~HttpTransportTest() override {
    transport_.reset();
    server_.reset();
  }
  HttpTransport& Transport(const HttpOptions& options = {}) {
    transport_ = std::make_unique<HttpTransport>(config_, options);
    return *transport_;
  }
  static ApiRequest Get(std::string path) {
    ApiRequest request;
    request.method = "GET";
    request.path = std::move(path);
    return request;
  }
  // Waits for the next event.
  static std::optional<WatchEvent> Next(WatchStream& stream) {
    WakeSignal bell;
    stream.OnReady([&] { bell.Ring(); });
    bell.Wait(seconds(30));
    return stream.Next();
  }

  Tap tap_;
  std::mutex mutex_;
  std::function<HttpResponse(const HttpRequest&)> answer_ = [](const HttpRequest&) {
    return Answer(200, "{}");
  };
  std::deque<HttpRequest> seen_;
  ConnectionConfig config_;
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<HttpTransport> transport_;
};

TEST_F(HttpTransportTest, SendsPathQueryTokenAndBody) {
  config_.token.text = "secret";
  ApiRequest request = Get("/api/v1/namespaces/a b/pods");
  request.method = "POST";
  request.query = {{"labelSelector", "a=b,c"}};
  request.content_type = "application/json";
  request.body = {{"x", 1}};
  EXPECT_EQ(Transport().Do(request)->text, "{}");
  EXPECT_EQ(seen_[0].target, "/api/v1/namespaces/a%20b/pods?labelSelector=a%3Db%2Cc");
  EXPECT_EQ(seen_[0].Header("authorization"), "Bearer secret");
  EXPECT_EQ(seen_[0].body, R"({"x":1})");
}

TEST_F(HttpTransportTest, SendsTextBodyUnchanged) {
  ApiRequest request = Get("/x");
  request.method = "POST";
  request.content_type = "application/json";
  request.content_encoding = "gzip";
  request.text = std::string("\x1f\x8b\0 no JSON", 11);
  EXPECT_EQ(Transport().Do(request)->code, 200);
  EXPECT_EQ(seen_[0].Header("content-encoding"), "gzip");
  EXPECT_EQ(seen_[0].body, request.text);
}

TEST_F(HttpTransportTest, RefusesAnswerBeyondSizeLimit) {
  answer_ = [](const HttpRequest& request) {
    return Answer(200, std::string(request.target == "/long" ? 1001 : 1000, '1'));
  };
  HttpTransport& transport = Transport({.max_answer_bytes = 1000});
  EXPECT_EQ(transport.Do(Get("/short"))->text.size(), 1000u);
  EXPECT_EQ(transport.Do(Get("/long")).status().code(), Code::kUnavailable);
}

TEST_F(HttpTransportTest, KnowsTimeOfServer) {
  std::string date;
  answer_ = [&](const HttpRequest&) {
    return date.empty() ? Answer(200, "{}") : Answer(200, "{}", {{"Date", date}});
  };
  HttpTransport& transport = Transport();
  for (const char* unreadable : {"", "yesterday", "Fri, 02 Jan 9999 03:04:05 GMT"}) {
    date = unreadable;
    ASSERT_TRUE(transport.Do(Get("/x")).ok());
    EXPECT_EQ(transport.ServerTime(), std::nullopt) << date;
  }
  const Time then = ParseTime("2026-01-02T03:04:05Z").value();
  date = net::HttpDate(then);
  EXPECT_EQ(date, "Fri, 02 Jan 2026 03:04:05 GMT");
  ASSERT_TRUE(transport.Do(Get("/x")).ok());
  ASSERT_TRUE(transport.ServerTime().has_value());
  EXPECT_GE(*transport.ServerTime(), then);
  EXPECT_LT(*transport.ServerTime(), then + std::chrono::minutes(10)) << "the answer's, and since";
}

TEST_F(HttpTransportTest, RetriesAfterRetryAfter) {
  int asked = 0;
  answer_ = [&](const HttpRequest&) {
    return ++asked < 2 ? Answer(429, "{}", {{"Retry-After", "1"}}) : Answer(200, "[1]");
  };
  const auto answer = Transport().Do(Get("/x"));
  EXPECT_EQ(answer->code, 200);
  EXPECT_EQ(answer->text, "[1]");
}

TEST_F(HttpTransportTest, RetriesManyRequestsAfterRetryAfter) {
  std::map<std::string, int> asked;
  answer_ = [&](const HttpRequest& request) {
    return ++asked[request.target] < 2 ? Answer(429, "{}", {{"Retry-After", "1"}})
                                       : Answer(200, "[1]");
  };
  std::vector<ApiRequest> requests;
  for (int i = 0; i < 30; ++i) requests.push_back(Get("/" + std::to_string(i)));
  for (const auto& answer : Transport({.timeout = seconds(10)}).DoAll(requests)) {
    EXPECT_EQ(answer->code, 200) << "one after the other there is no time for all";
  }
}

TEST_F(HttpTransportTest, HonoursTimeLimitOfRequest) {
  answer_ = [this](const HttpRequest&) {  // a body that never arrives
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  ApiRequest request = Get("/x");
  request.patience = std::chrono::milliseconds(50);
  EXPECT_EQ(Transport({.timeout = std::chrono::hours(1)}).Do(request).status().code(),
            Code::kDeadline);
  Client client(*transport_);
  EXPECT_EQ(client.Within(request.patience).Get(kNodes, "", "n").status().code(), Code::kDeadline);
}

TEST_F(HttpTransportTest, LimitsRequestsInFlight) {
  constexpr int kRequests = 10, kAtOnce = 3;
  std::vector<Tap> taps(kRequests);
  WakeSignal arrived;
  int open = 0, most = 0, next = 0;
  answer_ = [&](const HttpRequest&) {
    most = std::max(most, ++open);
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(taps[next++]);
    arrived.Ring();
    return response;
  };
  std::thread asks([&] {
    const std::vector<ApiRequest> requests(kRequests, Get("/x"));
    for (const auto& answer : Transport({.max_connections = kAtOnce}).DoAll(requests)) {
      EXPECT_TRUE(answer.ok());
    }
  });
  for (int i = 0; i < kRequests;) {
    arrived.Wait(seconds(30));
    const std::scoped_lock lock(mutex_);
    for (; i < next; ++i, --open) taps[i].End();
  }
  asks.join();
  EXPECT_LE(most, kAtOnce);
}

TEST_F(HttpTransportTest, ReturnsRefusalWithoutRetryAfter) {
  answer_ = [](const HttpRequest&) { return Answer(429, "{}"); };
  EXPECT_EQ(Transport().Do(Get("/x"))->code, 429);
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(HttpTransportTest, ReturnsBusyAnswerIfRetryAfterExceedsDeadline) {
  answer_ = [](const HttpRequest&) { return Answer(503, "{}", {{"Retry-After", "60"}}); };
  const auto answer = Transport().Do(Get("/x"));
  EXPECT_EQ(answer->code, 503);
  EXPECT_EQ(answer->retry_after, seconds(60));
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(HttpTransportTest, RetriesOnceAfterRefusedIdentity) {
  answer_ = [](const HttpRequest&) { return Answer(401, "{}"); };
  EXPECT_EQ(Transport().Do(Get("/x"))->code, 401);
  EXPECT_EQ(seen_.size(), 2u);
}

class WritesTest : public HttpTransportTest {
 protected:
  HttpTransport& Transport(HttpOptions options = {}) {
    options.may_write = [this] { return leads_.load(); };
    return HttpTransportTest::Transport(options);
  }
  static ApiRequest Patch(std::string path) {
    ApiRequest request = Get(std::move(path));
    request.method = "PATCH";
    request.body = JsonObject{};
    return request;
  }

  std::atomic<bool> leads_ = true;
};

TEST_F(WritesTest, SendsWritesOnlyWhileAllowed) {
  leads_ = false;
  const auto answer = Transport().Do(Patch("/x"));
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(transport_->Do(Get("/x"))->code, 200) << "reads always";
  EXPECT_EQ(seen_.size(), 1u);
  leads_ = true;
  EXPECT_EQ(transport_->Do(Patch("/x"))->code, 200);
}

TEST_F(WritesTest, DoesNotRetryWriteAfterLosingPermission) {
  answer_ = [&](const HttpRequest&) {
    leads_ = false;  // leadership is lost while Retry-After is waited out
    return Answer(429, "{}", {{"Retry-After", "1"}});
  };
  EXPECT_EQ(Transport().Do(Patch("/x")).status().code(), Code::kUnavailable);
  EXPECT_EQ(seen_.size(), 1u);
}

TEST_F(WritesTest, DoesNotSendRateLimitedWriteAfterLosingPermission) {
  answer_ = [&](const HttpRequest&) {
    leads_ = false;
    return Answer(200, "{}");
  };
  const std::vector<ApiRequest> requests(20, Patch("/x"));
  const auto answers = Transport({.requests_per_second = 100, .burst = 1}).DoAll(requests);
  EXPECT_TRUE(answers.front().ok());
  EXPECT_FALSE(answers.back().ok());
  EXPECT_LT(seen_.size(), 20u);
}

TEST_F(HttpTransportTest, ReturnsManyAnswersInOrder) {
  answer_ = [](const HttpRequest& request) { return Answer(200, "\"" + request.target + "\""); };
  std::vector<ApiRequest> requests;
  for (int i = 0; i < 300; ++i) requests.push_back(Get("/" + std::to_string(i)));
  const auto answers = Transport({.requests_per_second = 1e6, .burst = 1000}).DoAll(requests);
  ASSERT_EQ(answers.size(), requests.size());
  for (int i = 0; i < 300; ++i) EXPECT_EQ(answers[i]->text, "\"/" + std::to_string(i) + "\"");
}

TEST_F(HttpTransportTest, ReportsUnreachableServer) {
  server_.reset();
  const auto answer = Transport().Do(Get("/x"));
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_NE(answer.status().message().find("127.0.0.1"), std::string::npos);
}

TEST_F(HttpTransportTest, ReadsWatchEventsAsTheyArrive) {
  answer_ = [this](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  auto stream = std::move(*Transport().Watch(Get("/watch")));
  EXPECT_FALSE(stream->Next().has_value());
  tap_.Write(R"({"type":"ADDED","object":{"a":1}})");
  tap_.Write("\n{\"type\":\"MODIFIED\",");
  const auto first = Next(*stream);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->type, "ADDED");
  EXPECT_EQ(first->text, R"({"a":1})");
  tap_.Write("\"object\":{\"a\":2}}\n");
  EXPECT_EQ(Next(*stream)->text, R"({"a":2})");
  tap_.End();
  EXPECT_FALSE(Next(*stream).has_value());
  EXPECT_TRUE(stream->Ended());
}

TEST_F(HttpTransportTest, DestroyedWatchDisconnects) {
  answer_ = [this](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  auto stream = std::move(*Transport().Watch(Get("/watch")));
  tap_.Write("{\"type\":\"ADDED\",\"object\":{}}\n");
  EXPECT_TRUE(Next(*stream).has_value());
  stream.reset();
  EXPECT_TRUE(tap_.left.Wait(seconds(30)));
}

TEST_F(HttpTransportTest, EndsSilentWatch) {
  answer_ = [this](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  auto stream = std::move(*Transport({.watch_silence = seconds(1)}).Watch(Get("/watch")));
  const auto event = Next(*stream);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, "ERROR");
}

// The reader is busy, for example with a plan.
TEST_F(HttpTransportTest, EndsWatchWhoseEventsNobodyReads) {
  answer_ = [this](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  auto stream = std::move(*Transport({.max_watch_bytes = 3000}).Watch(Get("/watch")));
  const std::string line = R"({"type":"ADDED","object":{"a":")" + std::string(990, 'x') + "\"}}\n";
  for (int i = 0; i < 10; ++i) tap_.Write(line);
  EXPECT_TRUE(tap_.left.Wait(seconds(30)));
  WakeSignal ended;
  while (!stream->Ended()) {
    if (!stream->Next()) stream->OnReady([&] { ended.Ring(); });
  }
}

// A reader that keeps up gets any number of events, each of which may be larger than the limit.
TEST_F(HttpTransportTest, LimitsOnlyEventsThatWait) {
  answer_ = [this](const HttpRequest&) {
    HttpResponse response;
    response.stream = std::make_unique<TapStream>(tap_);
    return response;
  };
  auto stream = std::move(*Transport({.max_watch_bytes = 500}).Watch(Get("/watch")));
  const std::string line = R"({"type":"ADDED","object":{"a":")" + std::string(990, 'x') + "\"}}\n";
  for (int i = 0; i < 10; ++i) {
    tap_.Write(line);
    const auto event = Next(*stream);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, "ADDED");
  }
}

TEST_F(HttpTransportTest, ReportsRefusedWatchAsErrorEvent) {
  answer_ = [](const HttpRequest&) { return Answer(410, R"({"kind":"Status","code":410})"); };
  auto stream = std::move(*Transport().Watch(Get("/watch")));
  const auto event = Next(*stream);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, "ERROR");
  EXPECT_EQ(event->text, R"({"kind":"Status","code":410})");
}

// The main use of the transport: a reflector's list and watch, over the network.
TEST_F(HttpTransportTest, ListsPageByPage) {
  answer_ = [](const HttpRequest& request) {
    const bool second = request.target.find("continue=t") != std::string::npos;
    return Answer(
        200, second ? R"({"metadata":{"resourceVersion":"7"},"items":[{"n":2}]})"
                    : R"({"metadata":{"resourceVersion":"7","continue":"t"},"items":[{"n":1}]})");
  };
  Client client(Transport());
  const auto list = client.List(kPods, "", {});
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(list->items, (std::vector<Json>{{{"n", 1}}, {{"n", 2}}}));
  EXPECT_EQ(list->resource_version, "7");
}

}  // namespace
}  // namespace nos::kube
