// nos telemetry as a separate process, killed (SIGKILL) repeatedly while reporters deliver: every
// acknowledged record exists after a restart.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/millis.h"
#include "base/text.h"
#include "codec/json.h"
#include "net/http.h"

namespace nos {
namespace {

constexpr int kReporters = 4, kRounds = 5, kAcksARound = 500;

int64_t NowMillis() { return ToMillis(SystemClock().Now()); }

// One request on its own connection. code 0: no answer.
net::HttpResponse Call(uint16_t port, const std::string& method, const std::string& target,
                       const std::string& body) {
  net::HttpResponse response;
  response.code = 0;
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return response;
  }
  const std::string request = method + " " + target +
                              " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t n =
        send(socket.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return response;
    sent += static_cast<size_t>(n);
  }
  std::string all;
  char buffer[16384];
  for (ssize_t n = 0; (n = recv(socket.get(), buffer, sizeof buffer, 0)) > 0;) {
    all.append(buffer, static_cast<size_t>(n));
  }
  const size_t end = all.find("\r\n\r\n");
  const size_t length = all.find("Content-Length: ");
  if (end == std::string::npos || length == std::string::npos || length > end) return response;
  response.body = all.substr(end + 4);
  // A truncated answer counts as none.
  if (response.body.size() != std::strtoul(all.c_str() + length + 16, nullptr, 10)) return response;
  response.code = std::atoi(all.c_str() + 9);
  return response;
}

// The daemon, from its start until it prints its address.
class Daemon {
 public:
  explicit Daemon(const std::string& config) {
    int ends[2];
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl(NOS_BINARY, "nos", "telemetry", "--sandbox", "--config", config.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    log_ = UniqueFd(ends[0]);
    AwaitPort();
  }
  ~Daemon() { Kill(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  uint16_t port() const { return port_; }
  const std::string& said() const { return said_; }

 private:
  void AwaitPort() {
    char c = 0;
    while (read(log_.get(), &c, 1) == 1) {
      said_ += c;
      const size_t at = said_.rfind(" port=");
      if (c != '\n' || at == std::string::npos) continue;
      port_ = static_cast<uint16_t>(std::atoi(said_.c_str() + at + 6));
      return;
    }
  }

  pid_t pid_ = -1;
  UniqueFd log_;
  std::string said_;
  uint16_t port_ = 0;
};

struct Reporter {
  std::string name;
  int64_t acknowledged = 0;

  // The value of each sample is its envelope's number.
  std::string Envelope(int64_t begin) const {
    const int64_t number = acknowledged + 1;
    return WriteJson(
        {{"schema", 1},
         {"cluster", "prod"},
         {"source", "reporter/" + name},
         {"boot", "b"},
         {"sequence", number},
         {"records",
          {{{"kind", "gpu"},
            {"at", begin + number * 10'000},
            {"gpu", name},
            {"metrics", {{"number", number}, {"other", 0.5 * static_cast<double>(number)}}}},
           {{"kind", "event"},
            {"at", begin + number * 10'000},
            {"object", {{"kind", "Pod"}, {"namespace", name}, {"name", "p"}}},
            {"reason", std::to_string(number)}}}}});
  }
  // Delivers until the server does not answer.
  void Deliver(uint16_t port, int64_t begin, std::atomic<int>& all) {
    while (true) {
      const auto response = Call(port, "POST", "/api/v1/ingest", Envelope(begin));
      if (response.code != 200) return;
      const auto answer = ParseJson(response.body);
      if (!answer.ok()) return;
      ++acknowledged;
      EXPECT_EQ(WriteJson(*answer),
                "{\"sequence\":" + std::to_string(acknowledged) + ",\"refused\":[]}");
      ++all;
      all.notify_all();
    }
  }
};

void ExpectAll(const Reporter& reporter, uint16_t port, int64_t begin) {
  const std::string target = "/api/v1/series?metric=number&points=1000&subject=gpu/" +
                             reporter.name + "&from=" + std::to_string(begin) +
                             "&to=" + std::to_string(begin + 10'000'000);
  const auto response = Call(port, "GET", target, "");
  ASSERT_EQ(response.code, 200) << response.body;
  const auto answer = ParseJson(response.body);
  ASSERT_TRUE(answer.ok());
  const JsonArray& values = Find(Find(*answer, "series")->get_array()[0], "mean")->get_array();
  ASSERT_GT(static_cast<int64_t>(values.size()), reporter.acknowledged);
  for (int64_t number = 1; number <= reporter.acknowledged; ++number) {
    const Json& value = values[static_cast<size_t>(number)];
    ASSERT_TRUE(value.is_number())
        << reporter.name << " lost " << number << " of " << reporter.acknowledged;
    EXPECT_EQ(value.to_number<double>(), static_cast<double>(number));
  }
  // Each event exactly once.
  const auto history =
      Call(port, "GET", "/api/v1/history?limit=10000&namespace=" + reporter.name, "");
  const auto events = ParseJson(history.body);
  ASSERT_TRUE(events.ok()) << history.body;
  const auto count = static_cast<int64_t>(Find(*events, "events")->get_array().size());
  // The last envelope may have been stored although its acknowledgement was lost.
  EXPECT_GE(count, reporter.acknowledged);
  EXPECT_LE(count, reporter.acknowledged + 1);
}

TEST(TelemetryKillTest, AcknowledgedRecordsSurviveKills) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("nos-kill-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string config = folder / "telemetry.yaml";
  std::ofstream(config) << "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: TelemetryConfig\n"
                        << "listen: {bindAddress: \"127.0.0.1:0\"}\n"
                        << "store: {file: \"" << (folder / "t.db").string()
                        << "\", flushSeconds: 1}\n";
  const int64_t begin = NowMillis() / 10'000 * 10'000 - 10'800'000;  // three hours ago
  std::vector<Reporter> reporters;
  for (int i = 0; i < kReporters; ++i) reporters.push_back({"r" + std::to_string(i)});
  for (int round = 0; round < kRounds; ++round) {
    Daemon daemon(config);
    ASSERT_NE(daemon.port(), 0) << daemon.said();
    for (const Reporter& reporter : reporters) {
      if (reporter.acknowledged > 0) ExpectAll(reporter, daemon.port(), begin);
    }
    std::atomic<int> all{0};
    std::vector<std::thread> threads;
    for (Reporter& reporter : reporters) {
      threads.emplace_back([&] { reporter.Deliver(daemon.port(), begin, all); });
    }
    for (int seen = all; seen < kAcksARound; seen = all) all.wait(seen);
    daemon.Kill();
    for (std::thread& thread : threads) thread.join();
  }
  Daemon daemon(config);
  ASSERT_NE(daemon.port(), 0) << daemon.said();
  for (const Reporter& reporter : reporters) {
    EXPECT_GT(reporter.acknowledged, 0);
    ExpectAll(reporter, daemon.port(), begin);
  }
  daemon.Kill();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nos
