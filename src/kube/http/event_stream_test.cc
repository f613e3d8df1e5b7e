#include "kube/event_stream.h"

#include <gtest/gtest.h>

#include "base/wake_signal.h"
#include "net/http_server.h"

namespace nos::kube {
namespace {

// Sends one event and then, if requested, stays silent for ever.
class Saying final : public net::BodyStream {
 public:
  Saying(std::string text, bool ends) : text_(std::move(text)), ends_(ends) {}
  bool Read(std::string& out) override {
    out += std::exchange(text_, "");
    return !ends_;
  }
  void OnReady(std::function<void()>) override {}

 private:
  std::string text_;
  bool ends_;
};

class EventStreamTest : public testing::Test {
 protected:
  void Serve(int code, std::string text, bool ends) {
    server_ = *net::HttpServer::Start({}, [=](const net::HttpRequest& request) {
      net::HttpResponse response;
      response.code = code;
      if (request.Header("accept") != "text/event-stream" ||
          request.Header("authorization") != "Bearer secret" || request.target != "/s?cluster=a") {
        response.code = 400;
      } else if (code == 200) {
        response.stream = std::make_unique<Saying>(text, ends);
      } else {
        response.body = text;
      }
      return response;
    });
    ConnectionConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(server_->port());
    config.token.text = "secret";
    ApiRequest request;
    request.method = "GET";
    request.path = "/s";
    request.query = {{"cluster", "a"}};
    request.accept = "text/event-stream";
    stream_ = std::make_unique<EventStream>(config, request, [this] { bell_.Ring(); });
  }
  // The next event, or nothing after the end of the stream.
  std::optional<ServerEvent> Next() {
    while (true) {
      if (auto event = stream_->Next()) return event;
      if (stream_->Ended()) return std::nullopt;
      bell_.Wait(std::chrono::seconds(30));
    }
  }
  WakeSignal bell_;
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<EventStream> stream_;
};

TEST_F(EventStreamTest, DeliversEventsWhileStreamIsOpen) {
  Serve(200, "event: hello\nid: 1\ndata: {}\n\nevent: gpus\ndata: []\n\n", false);
  EXPECT_EQ(Next()->name, "hello");
  EXPECT_EQ(Next()->data, "[]");
  EXPECT_FALSE(stream_->Ended());
}

TEST_F(EventStreamTest, EndsWithOkWhenServerCloses) {
  Serve(200, "event: hello\ndata: {}\n\n", true);
  EXPECT_TRUE(Next().has_value());
  EXPECT_FALSE(Next().has_value());
  EXPECT_TRUE(stream_->error().ok()) << stream_->error().ToString();
}

TEST_F(EventStreamTest, ReportsServerErrorText) {
  Serve(403, R"({"error":"kim may see nothing"})", true);
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(stream_->error().code(), Code::kPermission);
  EXPECT_EQ(stream_->error().message(), "kim may see nothing");
}

TEST_F(EventStreamTest, ReportsUnreachableServer) {
  Serve(200, "", true);
  ConnectionConfig config;
  config.server = "http://127.0.0.1:" + std::to_string(server_->port());
  stream_.reset();
  server_.reset();
  ApiRequest request;
  request.method = "GET";
  request.path = "/s";
  stream_ = std::make_unique<EventStream>(config, request, [this] { bell_.Ring(); });
  EXPECT_FALSE(Next().has_value());
  EXPECT_EQ(stream_->error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace nos::kube
