#include "cmd/daemon/probes.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

class ProbesTest : public ::testing::Test {
 protected:
  std::string Ask(const std::string& target, const std::string& method = "GET") {
    net::HttpRequest request;
    request.method = method;
    request.target = target;
    const net::HttpResponse response = probes_->Answer(request);
    return std::to_string(response.code) + " " + response.body;
  }

  Status caches_ = Status(Code::kUnavailable, "not read yet"), loop_;
  Metrics metrics_;
  int scrapes_ = 0;
  std::unique_ptr<Probes> probes_ = Probes::Serve({"127.0.0.1:0", "0"},
                                                  {{"loop", [this] { return loop_; }, true},
                                                   {"caches", [this] { return caches_; }}},
                                                  metrics_, [this] { ++scrapes_; })
                                        .value();
};

TEST_F(ProbesTest, ReadyIfAllChecksPass) {
  EXPECT_EQ(Ask("/readyz"), "503 [+] loop\n[-] caches\nfailed\n");
  caches_ = Status::Ok();
  EXPECT_EQ(Ask("/readyz?verbose"), "200 [+] loop\n[+] caches\nok\n");
}

TEST_F(ProbesTest, HealthyUnlessFatalCheckFails) {
  EXPECT_EQ(Ask("/healthz"), "200 [+] loop\nok\n");
  loop_ = Internal("hangs");
  EXPECT_EQ(Ask("/healthz"), "503 [-] loop\nfailed\n");
}

TEST_F(ProbesTest, UpdatesGaugesBeforeScrape) {
  EXPECT_NE(Ask("/metrics").find("process_resident_memory_bytes"), std::string::npos);
  EXPECT_EQ(scrapes_, 1);
  EXPECT_EQ(Ask("/other").substr(0, 3), "404");
  EXPECT_EQ(Ask("/metrics", "POST").substr(0, 3), "405");
}

TEST(SecureProbesTest, ShowMetricsOnlyToThoseWithTheRight) {
  Metrics metrics;
  kube::FakeApi api;
  const ManualClock clock{Time(std::chrono::seconds(1'800'000'000))};
  const auto probes = Probes::Serve({"127.0.0.1:0", "0"}, {}, metrics, [] {},
                                    {std::make_unique<MetricsAccess>(api, clock)})
                          .value();
  net::HttpRequest request;
  request.method = "GET";
  request.target = "/metrics";
  EXPECT_EQ(probes->Answer(request, false).code, 403) << "without TLS nobody sends a token";
  EXPECT_EQ(probes->Answer(request, true).code, 401);
  for (const char* path : {"/healthz", "/readyz"}) {
    request.target = path;
    EXPECT_EQ(probes->Answer(request, false).code, 200);
    EXPECT_EQ(probes->Answer(request, true).code, 200);
  }
}

TEST(SecureProbesTest, NeedCertificateAndKeyTogether) {
  Metrics metrics;
  kube::FakeApi api;
  const ManualClock clock{Time(std::chrono::seconds(1'800'000'000))};
  const auto serve = [&](const std::string& certificate) {
    return Probes::Serve({"0", "127.0.0.1:0"}, {}, metrics, [] {},
                         {std::make_unique<MetricsAccess>(api, clock), certificate, ""})
        .status()
        .code();
  };
  EXPECT_EQ(serve(""), Code::kOk) << "with a certificate of its own";
  EXPECT_EQ(serve("/nowhere/tls.crt"), Code::kInvalid);
}

TEST(ProbesAddressTest, RejectsInvalidAddresses) {
  Metrics metrics;
  for (const char* address : {"8080", "host", ":x", ":70000", "not-a-host:80"}) {
    EXPECT_FALSE(Probes::Serve({address, ""}, {}, metrics, [] {}).ok()) << address;
  }
  EXPECT_TRUE(Probes::Serve({"", "0"}, {}, metrics, [] {}).ok());
  EXPECT_TRUE(Probes::Serve({"localhost:0", "[::1]:0"}, {}, metrics, [] {}).ok() ||
              !std::filesystem::exists("/proc/net/if_inet6"));
}

}  // namespace
}  // namespace nos::cmd
