// The server on a port, addressed in raw HTTP.
#include "sim/serve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/text.h"

namespace nos::sim {
namespace {

class Connection {
 public:
  explicit Connection(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

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

 private:
  int fd_;
};

class ServeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = ServeApi(api_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
  }
  // Sends one request on a new connection and returns the whole answer.
  std::string Ask(std::string_view line, std::string_view body = "",
                  std::string_view headers = "Host: 127.0.0.1\r\n") {
    Connection connection(server_->port());
    connection.Send(
        fmt::format("{} HTTP/1.1\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", line,
                    headers, body.size(), body));
    return connection.ReadUntil("");
  }
  static int CodeOf(const std::string& answer) { return std::atoi(answer.substr(9, 3).c_str()); }
  // The values of the answer's Warning headers.
  static std::vector<std::string> WarningsOf(const std::string& answer) {
    constexpr std::string_view kName = "Warning: ";
    std::vector<std::string> warnings;
    const std::string_view headers(answer.data(), answer.find("\r\n\r\n"));
    for (const std::string_view line : Split(headers, '\n')) {
      if (line.starts_with(kName)) warnings.emplace_back(Trim(line.substr(kName.size())));
    }
    return warnings;
  }

  SystemClock clock_;
  ApiServer api_{clock_};
  std::unique_ptr<net::HttpServer> server_;
};

TEST_F(ServeTest, AnswersHaveTimeOfServer) {
  const ManualClock clock(ParseTime("2026-01-02T03:04:05Z").value());
  ApiServer api(clock);
  auto server = ServeApi(api);
  ASSERT_TRUE(server.ok());
  server_ = std::move(*server);
  for (const std::string_view line :
       {"GET /api/v1/nodes", "GET /nothing", "GET /api/v1/nodes?watch=true&timeoutSeconds=1"}) {
    EXPECT_NE(Ask(line).find("\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n"), std::string::npos)
        << line;
  }
  server_.reset();
}

TEST_F(ServeTest, AnswersWithTheRightTypes) {
  EXPECT_NE(Ask("GET /readyz").find("text/plain"), std::string::npos);
  EXPECT_NE(Ask("GET /api/v1/pods").find("application/json"), std::string::npos);
  EXPECT_NE(Ask("GET /openapi/v2").find("protobuf"), std::string::npos);
}

TEST_F(ServeTest, HostileRequestsGetAnAnswerAndHarmNoClient) {
  const std::string maps = "POST /api/v1/namespaces/default/configmaps";
  const std::string json = "Host: localhost\r\nContent-Type: application/json\r\n";
  const std::pair<std::string, int> cases[] = {
      {Ask("GET /api/v1/namespaces/a%2Fb/pods"), 400},
      {Ask("GET /api/v1/%zz"), 400},
      {Ask("GET /api/v1/pods?x=%"), 400},
      {Ask("GET /api/v1/../../etc/passwd"), 400},
      {Ask(maps, "{", json), 400},
      {Ask(maps, std::string(5000, '['), json), 400},
      {Ask(maps, "{\"a\":\"\xff\xfe\"}", json), 400},
      {Ask(maps, std::string(5'000'000, ' '), json), 413},
      {Ask(maps, "{}", "Host: localhost\r\nContent-Type: text/plain\r\n"), 415},
      {Ask(maps, "{}", "Host: localhost\r\nContent-Type: text/plain; a=json\r\n"), 415},
      {Ask(maps, "{}", "Host: localhost\r\nContent-Type: application/jsonp\r\n"), 415},
      {Ask(maps, "a: b", "Host: localhost\r\nContent-Type: text/x-yaml\r\n"), 415},
      {Ask(maps, "{}", "Host: localhost\r\nOrigin: http://localhost\r\n"), 415},
      {Ask(maps, "{}", "Host: localhost\r\nSec-Fetch-Site: none\r\n"), 415},
      {Ask(maps, "{}", json + "Origin: http://localhost\r\nOrigin: http://evil.example\r\n"), 403},
      {Ask(maps, "a: [", "Host: localhost\r\nContent-Type: application/yaml\r\n"), 400},
      {Ask(maps, "k8s", "Host: localhost\r\nContent-Type: application/vnd.kubernetes.protobuf\r\n"),
       400},
      {Ask("GET /api/v1/pods", "", "Host: evil.example\r\n"), 403},
      {Ask("GET /api/v1/pods", "", ""), 403},
      {Ask(maps, "{}", json + "Origin: http://evil.example\r\n"), 403},
      {Ask("GET /api/v1/pods", "", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"), 403},
      {Ask("OPTIONS /api/v1/pods"), 405},
      {Ask("BREW /api/v1/pods"), 405},
  };
  for (const auto& [answer, code] : cases) EXPECT_EQ(CodeOf(answer), code) << answer;
  EXPECT_EQ(CodeOf(Ask("GET /api/v1/pods")), 200);
}

TEST_F(ServeTest, AcceptsJsonWithOrWithoutContentType) {
  const std::string maps = "POST /api/v1/namespaces/default/configmaps";
  int n = 0;
  for (const std::string_view type : {"", "Content-Type: application/json\r\n",
                                      "Content-Type: Application/JSON; charset=UTF-8\r\n"}) {
    const std::string answer = Ask(maps, fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", ++n),
                                   fmt::format("Host: localhost\r\n{}", type));
    EXPECT_EQ(CodeOf(answer), 201) << type << answer;
  }
}

TEST_F(ServeTest, AcceptsYamlLikeKubernetes) {
  const std::string answer =
      Ask("PATCH /api/v1/namespaces/default/configmaps/m?fieldManager=x",
          "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n",
          "Host: localhost\r\nContent-Type: application/apply-patch+yaml\r\n");
  EXPECT_EQ(CodeOf(answer), 201) << answer;
  EXPECT_EQ(CodeOf(Ask("PATCH /api/v1/namespaces/default/configmaps/m", "data: {a: b}",
                       "Host: localhost\r\nContent-Type: application/apply-patch+yaml\r\n")),
            400);
}

TEST_F(ServeTest, FaultyBodiesGetWarningsOrAreRefused) {
  const std::string maps = "POST /api/v1/namespaces/default/configmaps";
  const std::string json = "Host: localhost\r\nContent-Type: application/json\r\n";
  const std::string body =
      R"({"metadata":{"name":"m"},"dta":{},"a\"\n":1,"data":{"k":"1","k":"2"}})";
  const std::string strict = Ask(maps + "?fieldValidation=Strict", body, json);
  EXPECT_EQ(CodeOf(strict), 400);
  EXPECT_NE(strict.find(R"(duplicate field \"data.k\", unknown field \"dta\")"), std::string::npos)
      << strict;
  const std::string warned = Ask(maps, body, json);
  EXPECT_EQ(CodeOf(warned), 201);
  EXPECT_EQ(WarningsOf(warned), (std::vector<std::string>{R"(299 - "duplicate field \"data.k\"")",
                                                          R"(299 - "unknown field \"dta\"")",
                                                          R"(299 - "unknown field \"a\"?\"")"}));
  EXPECT_EQ(warned.find("dta\":"), std::string::npos) << warned;
}

TEST_F(ServeTest, HeadReturnsGetWithoutBody) {
  const std::string get = Ask("GET /api/v1/namespaces");
  const std::string head = Ask("HEAD /api/v1/namespaces");
  EXPECT_EQ(head, get.substr(0, get.find("\r\n\r\n") + 4));
  EXPECT_EQ(CodeOf(Ask("HEAD /readyz")), 200);
  EXPECT_EQ(CodeOf(Ask("HEAD /api/v1/namespaces/none")), 404);
  EXPECT_EQ(CodeOf(Ask("HEAD /api/v1/pods?watch=true")), 200);
}

TEST_F(ServeTest, UnservedPathsAreRefusedWhateverTheBody) {
  const std::string protobuf =
      "Host: localhost\r\nContent-Type: application/vnd.kubernetes.protobuf\r\n";
  for (const auto& [path, what] :
       {std::pair("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                  "does not serve selfsubjectaccessreviews.authorization.k8s.io"),
        std::pair("/api/v1/namespaces/default/podtemplates", "does not serve podtemplates"),
        std::pair("/api/v1/namespaces/default/serviceaccounts/default/token",
                  "does not serve serviceaccounts/token")}) {
    const std::string answer = Ask(fmt::format("POST {}", path), "what is this", protobuf);
    EXPECT_EQ(CodeOf(answer), 404) << answer;
    EXPECT_NE(answer.find(what), std::string::npos) << answer;
  }
}

TEST_F(ServeTest, WatchStreamsUntilItsTimeout) {
  Connection connection(server_->port());
  connection.Send(
      "GET /api/v1/namespaces?watch=true&timeoutSeconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(connection.ReadUntil("kube-system").find(R"({"type":"ADDED")"), std::string::npos);
  Ask("POST /api/v1/namespaces", R"({"metadata":{"name":"new-one"}})",
      "Host: localhost\r\nContent-Type: application/json\r\n");
  EXPECT_NE(connection.ReadUntil("new-one").find("new-one"), std::string::npos);
  EXPECT_TRUE(connection.ReadUntil("").ends_with("0\r\n\r\n"));
}

TEST_F(ServeTest, SilentWatchGetsBookmarksIfAllowed) {
  server_ = std::move(*ServeApi(api_, "127.0.0.1", 0, std::chrono::milliseconds(10)));
  Connection deaf(server_->port());
  deaf.Send("GET /api/v1/pods?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Connection connection(server_->port());
  connection.Send(
      "GET /api/v1/pods?watch=1&allowWatchBookmarks=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    const std::string line = connection.ReadUntil("}}\n");
    EXPECT_NE(line.find(R"({"type":"BOOKMARK","object":{"kind":"Pod")"), std::string::npos) << line;
    EXPECT_NE(line.find("resourceVersion"), std::string::npos);
  }
  EXPECT_EQ(deaf.ReadUntil("").find("BOOKMARK"), std::string::npos);
}

TEST_F(ServeTest, ManyAbandonedWatchesCostNothing) {
  for (int i = 0; i < 200; ++i) {
    Connection connection(server_->port());
    connection.Send("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  EXPECT_EQ(CodeOf(Ask("GET /api/v1/pods")), 200);
}

TEST_F(ServeTest, ListensOnLoopbackOnly) {
  EXPECT_EQ(ServeApi(api_, "0.0.0.0").status().code(), Code::kInvalid);
  EXPECT_EQ(ServeApi(api_, "192.0.2.1").status().code(), Code::kInvalid);
}

TEST_F(ServeTest, PublishedItListensOnEveryAddressForThisMachineOnly) {
  server_ = std::move(*ServeApi(api_, "0.0.0.0", 0, std::chrono::minutes(1), Reach::kPublished));
  EXPECT_EQ(CodeOf(Ask("GET /api/v1/pods")), 200);
  EXPECT_EQ(CodeOf(Ask("GET /api/v1/pods", "", "Host: sandbox.example\r\n")), 403);
}

}  // namespace
}  // namespace nos::sim
