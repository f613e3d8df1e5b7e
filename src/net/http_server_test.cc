#include "net/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace nos::net {
namespace {

// A raw client: sends bytes, reads until the server closes or `until` was seen.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawClient() { Leave(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void Send(std::string_view text) { (void)send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  std::string ReadUntil(std::string_view until) {
    std::string text;
    char buffer[4096];
    while (until.empty() || text.find(until) == std::string::npos) {
      const ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }
  std::string ReadAll() { return ReadUntil(""); }
  void Leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  bool connected_ = false;
};

// A stream that a test feeds; counts its living instances.
struct Feed {
  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;
  bool ended = false;
  std::function<void()> wake;
  int open = 0;

  void Put(std::string_view text, bool last = false) {
    const std::lock_guard lock(mutex);
    pending += text;
    ended = ended || last;
    if (wake) std::exchange(wake, nullptr)();
  }
  void AwaitOpen(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open == count; });
  }
};

class FeedStream final : public BodyStream {
 public:
  explicit FeedStream(Feed& feed) : feed_(feed) {
    const std::lock_guard lock(feed_.mutex);
    ++feed_.open;
    feed_.changed.notify_all();
  }
  ~FeedStream() override {
    const std::lock_guard lock(feed_.mutex);
    feed_.wake = nullptr;
    --feed_.open;
    feed_.changed.notify_all();
  }
  bool Read(std::string& out) override {
    const std::lock_guard lock(feed_.mutex);
    out += std::exchange(feed_.pending, "");
    return !feed_.ended;
  }
  void ReadIdle(std::string& out) override { out += "idle"; }
  void OnReady(std::function<void()> wake) override {
    const std::lock_guard lock(feed_.mutex);
    if (!feed_.pending.empty() || feed_.ended) return wake();
    feed_.wake = std::move(wake);
  }

 private:
  Feed& feed_;
};

class HttpServerTest : public testing::Test {
 protected:
  void Serve(const HttpServerOptions& options = {}) {
    auto server = HttpServer::Start(options, [this](const HttpRequest& request) {
      ++handled_;
      HttpResponse response;
      if (request.target == "/stream") {
        response.stream = std::make_unique<FeedStream>(feed_);
        response.stream_limit = stream_limit_;
        response.stream_idle = stream_idle_;
      } else if (request.target == "/throw") {
        throw std::runtime_error("x");
      } else {
        response.body = request.method + " " + request.target + " " + request.body;
      }
      return response;
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
  }
  uint16_t port() const { return server_->port(); }
  // The bytes of an answer with this body.
  static std::string Answer(const std::string& body, bool keep_alive) {
    HttpResponse response;
    response.body = body;
    return HeadOf(response, keep_alive) + body;
  }

  Feed feed_;
  Duration stream_limit_{}, stream_idle_{};
  std::atomic<int> handled_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersPipelinedRequestsOnOneConnectionInOrder) {
  Serve();
  RawClient client(port());
  client.Send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz");
  client.Send("GET /c HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.ReadAll(),
            Answer("GET /a ", true) + Answer("POST /b xyz", true) + Answer("GET /c ", false));
}

TEST_F(HttpServerTest, AcceptsChunkedBodiesAndExpectContinue) {
  Serve();
  RawClient client(port());
  client.Send(
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_NE(client.ReadUntil("100 Continue\r\n\r\n").find("HTTP/1.1 100"), std::string::npos);
  client.Send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.ReadAll(), Answer("POST /a abcde", false));
}

TEST_F(HttpServerTest, RefusesMalformedOrTooLargeRequests) {
  HttpServerOptions options;
  options.max_header_bytes = 1024;
  options.max_body_bytes = 10;
  Serve(options);
  const std::pair<std::string, std::string> cases[] = {
      {"rubbish\r\n\r\n", "HTTP/1.1 400"},
      {"GET /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"},
      {"GET /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       "HTTP/1.1 400"},
      {"GET /a HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "HTTP/1.1 431"},
      {"POST /a HTTP/1.1\r\nContent-Length: 11\r\n\r\n01234567890", "HTTP/1.1 413"},
      {"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
       "HTTP/1.1 413"},
  };
  for (const auto& [sent, answer] : cases) {
    RawClient client(port());
    client.Send(sent);
    const std::string text = client.ReadUntil("\r\n\r\n");
    EXPECT_EQ(text.substr(0, answer.size()), answer) << sent;
  }
  EXPECT_EQ(handled_, 0);
}

// If accepted, the bytes after such a request, or its body, would pass for another request (request
// smuggling).
TEST_F(HttpServerTest, RefusesRequestWithAmbiguousLength) {
  Serve();
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string_view header :
       {"Transfer-Encoding: gzip", "Transfer-Encoding: identity", "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity", "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding:", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Content-Length: 0\r\nContent-Length: 5"}) {
    RawClient client(port());
    client.Send("POST /a HTTP/1.1\r\nHost: x\r\n" + std::string(header) + "\r\n\r\n" + smuggled);
    const std::string answer = client.ReadAll();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << header << "\n" << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos)
        << "one answer, then the connection ends: " << header << "\n"
        << answer;
  }
  RawClient old(port());
  old.Send("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_TRUE(old.ReadAll().starts_with("HTTP/1.1 400 "));
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, ThrowingHandlerFailsOnlyItsRequest) {
  Serve();
  RawClient client(port());
  client.Send("GET /throw HTTP/1.1\r\n\r\n");
  EXPECT_NE(client.ReadUntil("internal error").find("HTTP/1.1 500"), std::string::npos);
  client.Send("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.ReadAll().find("GET /b"), std::string::npos);
}

TEST_F(HttpServerTest, StreamsChunksAsTheyArriveAndEndsCleanly) {
  Serve();
  RawClient client(port());
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  client.ReadUntil("\r\n\r\n");
  feed_.Put("first");
  EXPECT_NE(client.ReadUntil("first").find("5\r\nfirst"), std::string::npos);
  feed_.Put("second", /*last=*/true);
  EXPECT_NE(client.ReadAll().find("6\r\nsecond\r\n0\r\n\r\n"), std::string::npos);
  feed_.AwaitOpen(0);
}

TEST_F(HttpServerTest, DestroysAbandonedStream) {
  Serve();
  RawClient client(port());
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  feed_.AwaitOpen(1);
  client.Leave();
  feed_.AwaitOpen(0);
}

TEST_F(HttpServerTest, EndsStreamAtTimeLimit) {
  stream_limit_ = std::chrono::milliseconds(20);
  Serve();
  RawClient client(port());
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.ReadAll().ends_with("\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, SendsKeepAlivesOnIdleStream) {
  stream_idle_ = std::chrono::milliseconds(10);
  Serve();
  RawClient client(port());
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  client.ReadUntil("4\r\nidle\r\n");
  feed_.Put("");  // a wake call without data
  client.ReadUntil("4\r\nidle\r\n");
  feed_.Put("last", /*last=*/true);
  EXPECT_TRUE(client.ReadAll().ends_with("4\r\nlast\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, WakeWithoutDataCountsAsIdle) {
  stream_idle_ = std::chrono::milliseconds(100);
  Serve();
  RawClient client(port());
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  std::atomic<bool> over = false;
  std::thread waker([&] {
    for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) feed_.Put("");
  });
  const std::string text = client.ReadUntil("4\r\nidle\r\n");
  over = true;
  waker.join();
  EXPECT_TRUE(text.ends_with("4\r\nidle\r\n"));
}

TEST_F(HttpServerTest, DropsSlowClientAndServesOthers) {
  HttpServerOptions options;
  options.request_timeout = std::chrono::milliseconds(50);
  Serve(options);
  RawClient slow(port());
  slow.Send("GET /slow HTTP/1.1\r\nX: ");
  RawClient other(port());
  other.Send("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(other.ReadAll().find("GET /b"), std::string::npos);
  EXPECT_EQ(slow.ReadAll(), "");
}

TEST_F(HttpServerTest, ClosesConnectionWithoutRequest) {
  HttpServerOptions options;
  options.request_timeout = std::chrono::milliseconds(50);
  Serve(options);
  RawClient silent(port());
  EXPECT_EQ(silent.ReadAll(), "");
}

TEST_F(HttpServerTest, EvictsLongestIdleConnectionAtLimit) {
  HttpServerOptions options;
  options.max_connections = 3;
  options.threads = 1;  // a connection is then idle again before the next request is read
  Serve(options);
  RawClient busy(port());
  busy.Send("GET /stream HTTP/1.1\r\n\r\n");
  feed_.AwaitOpen(1);
  RawClient first(port()), second(port());
  for (RawClient* client : {&second, &first, &second}) {
    client->Send("GET /a HTTP/1.1\r\n\r\n");
    client->ReadUntil("GET /a");
  }
  RawClient third(port());
  third.Send("GET /third HTTP/1.1\r\n\r\n");
  EXPECT_NE(third.ReadUntil("GET /third").find("200"), std::string::npos);
  EXPECT_EQ(first.ReadAll(), "") << "it waited longest";
  second.Send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_NE(second.ReadUntil("GET /b").find("200"), std::string::npos);
  feed_.Put("still there", /*last=*/true);
  EXPECT_NE(busy.ReadAll().find("still there"), std::string::npos);
}

TEST_F(HttpServerTest, IdleConnectionsDoNotBlockNewClients) {
  HttpServerOptions options;
  options.max_connections = 4;
  options.threads = 1;
  Serve(options);
  std::deque<RawClient> idle;
  for (int i = 0; i < 40; ++i) idle.emplace_back(port());
  RawClient client(port());
  client.Send("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.ReadAll().find("GET /a"), std::string::npos);
}

TEST_F(HttpServerTest, SlowRequestsDoNotBlockNewClients) {
  HttpServerOptions options;
  options.max_connections = 4;
  options.threads = 1;
  Serve(options);
  std::deque<RawClient> slow;
  for (int i = 0; i < 40; ++i) slow.emplace_back(port()).Send("P");
  RawClient client(port());
  client.Send("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.ReadAll().find("GET /a"), std::string::npos);
}

TEST_F(HttpServerTest, LimitsMemoryOfUnfinishedRequests) {
  HttpServerOptions options;
  options.max_held_bytes = 1500;
  Serve(options);
  const auto post = [](size_t length, size_t sent) {
    return "POST /a HTTP/1.1\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: " +
           std::to_string(length) + "\r\n\r\n" + std::string(sent, 'x');
  };
  RawClient first(port()), second(port());
  for (RawClient* client : {&first, &second}) {
    client->Send(post(500, 399));
    client->ReadUntil("100 Continue\r\n\r\n");
  }
  RawClient third(port());
  third.Send(post(500, 500));
  EXPECT_NE(third.ReadAll().find("200 OK"), std::string::npos);
  EXPECT_EQ(first.ReadAll(), "") << "it has been under way longest";
  second.Send(std::string(101, 'x'));
  EXPECT_NE(second.ReadAll().find("200 OK"), std::string::npos);
  RawClient large(port());
  large.Send(post(2000, 1600));
  EXPECT_NE(large.ReadAll().find("503 "), std::string::npos);
  EXPECT_EQ(handled_, 2);
}

TEST_F(HttpServerTest, ExpectContinueDoesNotExtendTimeLimit) {
  HttpServerOptions options;
  options.request_timeout = std::chrono::milliseconds(50);
  Serve(options);
  RawClient client(port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.ReadAll().ends_with("100 Continue\r\n\r\n"));
}

TEST_F(HttpServerTest, ClosesNewConnectionWhenAllAreBusy) {
  HttpServerOptions options;
  options.max_connections = 1;
  Serve(options);
  RawClient first(port());
  first.Send("GET /stream HTTP/1.1\r\n\r\n");
  feed_.AwaitOpen(1);
  RawClient second(port());
  second.Send("GET /b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(second.ReadAll(), "");
}

TEST_F(HttpServerTest, StopsWithOpenStreamsAndIdleConnections) {
  Serve();
  RawClient streaming(port());
  streaming.Send("GET /stream HTTP/1.1\r\n\r\n");
  feed_.AwaitOpen(1);
  RawClient idle(port());
  server_.reset();
  EXPECT_EQ(feed_.open, 0);
}

TEST_F(HttpServerTest, ReportsTakenPortAndInvalidAddress) {
  Serve();
  HttpServerOptions options;
  options.port = port();
  const auto nothing = [](const HttpRequest&) { return HttpResponse{}; };
  EXPECT_EQ(HttpServer::Start(options, nothing).status().code(), Code::kUnavailable);
  options.address = "nowhere";
  EXPECT_EQ(HttpServer::Start(options, nothing).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::net
