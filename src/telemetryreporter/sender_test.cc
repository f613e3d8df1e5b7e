// Tests the sender with the real HTTP client against a server on loopback that fails in every way.
// Time is virtual; only answers are waited for.
#include "telemetryreporter/sender.h"

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "codec/gzip.h"
#include "kube/http_transport.h"
#include "net/certificate.h"
#include "net/http_server.h"
#include "telemetry/testing/temp_folder.h"

namespace nos::telemetry {
namespace {

using net::HttpRequest;
using net::HttpResponse;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Accepts envelopes as documented: each sequence once, acknowledged again if it is repeated.
class Ingest {
 public:
  // Answer to the next request; `takes`: the envelope is stored although the answer is an error.
  struct Fault {
    int code = 500;
    std::string body = "{\"error\":\"on purpose\"}";
    net::HttpHeaders headers{};
    bool takes = false;
  };

  HttpResponse Answer(const HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    ++requests;
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, prefix + "/api/v1/ingest");
    EXPECT_EQ(request.Header("content-type"), "application/json");
    EXPECT_EQ(request.Header("content-encoding"), "gzip");
    authorization = request.Header("authorization");
    if (!token.empty() && authorization != "Bearer " + token) return Respond({401, "{}", {}, {}});
    std::optional<Fault> fault;
    if (!faults.empty()) {
      fault = faults.front();
      faults.pop_front();
    }
    const auto text = Gunzip(request.body, 32 << 20);
    const auto envelope = text.ok() ? ParseJson(*text) : text.status();
    if (!envelope.ok()) {
      ADD_FAILURE() << envelope.status().message();
      return Respond({400, "{}", {}, {}});
    }
    if (fault && !fault->takes) return Respond(*fault);
    const uint64_t sequence = Take(*envelope);
    if (fault) return Respond(*fault);
    return Respond({200, "{\"sequence\":" + std::to_string(sequence) + ",\"refused\":[]}", {}, {}});
  }

  void Set(std::deque<Fault> next) {
    const std::scoped_lock lock(mutex_);
    faults = std::move(next);
  }
  void SetToken(std::string next) {
    const std::scoped_lock lock(mutex_);
    token = std::move(next);
  }
  // Makes results of the server thread visible to the test.
  void Sync() { const std::scoped_lock lock(mutex_); }

  std::string prefix, authorization;
  int requests = 0, repeated = 0;
  uint64_t lost = 0;
  std::vector<Json> envelopes;
  std::vector<int64_t> numbers;  // of the records, in order of arrival

 private:
  static HttpResponse Respond(const Fault& fault) {
    HttpResponse response;
    response.code = fault.code;
    response.body = fault.body;
    response.headers = fault.headers;
    return response;
  }
  uint64_t Take(const Json& envelope) {
    const auto sequence = envelope.at("sequence").to_number<uint64_t>();
    uint64_t& have = highest_[std::string(FindString(envelope, "boot"))];
    if (sequence <= have) {
      ++repeated;
      return have;
    }
    have = sequence;
    lost += envelope.at("lost").to_number<uint64_t>();
    for (const Json& record : envelope.at("records").as_array()) {
      numbers.push_back(record.at("n").to_number<int64_t>());
    }
    envelopes.push_back(envelope);
    return have;
  }
  std::mutex mutex_;
  std::deque<Fault> faults;
  std::string token;
  std::map<std::string, uint64_t> highest_;
};

// A transport that loses the answers to some requests.
class LosesAnswers final : public kube::Transport {
 public:
  explicit LosesAnswers(kube::Transport& to) : to_(to) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    auto answer = to_.Do(request);
    if (next <= 0) return answer;
    --next;
    return Status(Code::kUnavailable, "connection reset");
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override {
    return to_.Watch(request);
  }
  int next = 0;

 private:
  kube::Transport& to_;
};

class SenderTest : public testing::Test {
 protected:
  SenderTest() {
    Serve();
    Restart();
  }
  void Serve() {
    net::HttpServerOptions options;
    options.port = port_;
    auto server = net::HttpServer::Start(
        options, [this](const auto& request) { return ingest_.Answer(request); });
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(server).value();
    port_ = server_->port();
  }
  // Simulates a restart of the process.
  void Restart() {
    sender_.reset();
    spool_.reset();
    kube::ConnectionConfig to;
    to.server = "http://127.0.0.1:" + std::to_string(port_) + ingest_.prefix;
    if (!token_file_.empty()) to.token.file = token_file_;
    kube::HttpOptions options;
    options.timeout = seconds(10);
    transport_ = std::make_unique<kube::HttpTransport>(to, options);
    loses_ = std::make_unique<LosesAnswers>(*transport_);
    spool_ = Spool::Open({.folder = folder_.path() + "/spool"}).value();
    sender_ = std::make_unique<Sender>(SenderOptions{.cluster = "prod", .source = "node/n1"},
                                       *spool_, *loses_, metrics_);
  }
  void Append(int number) {
    const std::vector<std::string> records{"{\"n\":" + std::to_string(number) + "}"};
    ASSERT_TRUE(spool_->Append(records).ok());
  }
  std::optional<Duration> Step() {
    const auto pause = sender_->Step(clock_.Now());
    ingest_.Sync();
    return pause;
  }
  // Steps and waits as requested until nothing is left to send, or until `until`.
  void Run(std::optional<Time> until = std::nullopt) {
    for (int steps = 0; steps < 10'000; ++steps) {
      const auto pause = Step();
      if (!pause) return;
      if (until && clock_.Now() + *pause > *until) return clock_.AdvanceTo(*until);
      clock_.Advance(*pause);
      longest_pause_ = std::max(longest_pause_, *pause);
    }
    FAIL() << "it never ends";
  }

  TempFolder folder_;
  Ingest ingest_;
  uint16_t port_ = 0;
  std::unique_ptr<net::HttpServer> server_;
  std::string token_file_;
  Metrics metrics_;
  std::unique_ptr<kube::HttpTransport> transport_;
  std::unique_ptr<LosesAnswers> loses_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Sender> sender_;
  ManualClock clock_{Time(hours(24 * 365 * 55))};
  Duration longest_pause_{};
};

using Numbers = std::vector<int64_t>;

TEST_F(SenderTest, SendsEnvelopesAsDocumented) {
  Append(1);
  Append(2);
  Run();
  EXPECT_EQ(ingest_.numbers, (Numbers{1, 2}));
  ASSERT_EQ(ingest_.envelopes.size(), 2u);
  const Json& envelope = ingest_.envelopes[1];
  EXPECT_EQ(envelope.at("schema"), 1);
  EXPECT_EQ(FindString(envelope, "cluster"), "prod");
  EXPECT_EQ(FindString(envelope, "source"), "node/n1");
  EXPECT_EQ(FindString(envelope, "boot"), spool_->boot());
  EXPECT_EQ(envelope.at("sequence"), 2);
  EXPECT_EQ(envelope.at("sent_at"), int64_t{24} * 365 * 55 * 3600 * 1000);
  EXPECT_EQ(spool_->Stats().envelopes, 0u);
  EXPECT_NE(metrics_.Text().find("nos_telemetry_envelopes_total{result=\"acknowledged\"} 2"),
            std::string::npos);
}

TEST_F(SenderTest, DeliversCompleteAndInOrderAfterHourOffline) {
  Append(0);
  Run();
  server_.reset();
  Numbers all{0};
  const Time back = clock_.Now() + hours(1);
  for (int i = 1; i <= 360; ++i) {
    Append(i);
    all.push_back(i);
    const Time next = clock_.Now() + seconds(10);
    Run(next);
    clock_.AdvanceTo(next);
    if (i % 100 == 0) Restart();  // the node's agent is updated meanwhile
  }
  ASSERT_EQ(clock_.Now(), back);
  EXPECT_LE(longest_pause_, minutes(1));
  EXPECT_FALSE(sender_->trouble().ok());
  Serve();
  Run();
  EXPECT_EQ(ingest_.numbers, all);
  EXPECT_EQ(ingest_.lost, 0u);
  EXPECT_EQ(ingest_.repeated, 0);
  EXPECT_LE(clock_.Now() - back, minutes(1)) << "the first request after the outage delivers all";
  EXPECT_TRUE(sender_->trouble().ok());
}

TEST_F(SenderTest, ServerErrorsLoseOrReorderNothing) {
  const std::vector<Ingest::Fault> faults{{500},
                                          {502, "<html>proxy</html>"},
                                          {404, "404 page not found"},
                                          {405, ""},
                                          {400, "<html>a proxy that is asked in plain text</html>"},
                                          {422, "{\"message\":\"somebody else's\"}"},
                                          {302, "", {{"location", "http://127.0.0.1:1/"}}},
                                          {204, ""},
                                          {200, ""},
                                          {200, "no JSON"},
                                          {200, "[1,2,3]"},
                                          {200, "{\"sequence\":\"7\"}"},
                                          {200, "{\"sequence\":0}"},
                                          {200, "{\"sequence\":-1}"},
                                          {200, "{\"sequence\":1e99}"},
                                          {500, "after it was written", {}, true},
                                          {429, "{}"},
                                          {503, "{}", {{"retry-after", "nonsense"}}},
                                          {403, "{\"error\":\"wrong cluster\"}"}};
  Numbers all;
  for (size_t i = 0; i < faults.size(); ++i) {
    ingest_.Set({faults[i]});
    Append(static_cast<int>(2 * i));
    Append(static_cast<int>(2 * i + 1));
    all.insert(all.end(), {static_cast<int64_t>(2 * i), static_cast<int64_t>(2 * i + 1)});
    const auto pause = Step();
    ASSERT_TRUE(pause);
    EXPECT_GT(*pause, Duration::zero()) << i;
    EXPECT_FALSE(sender_->trouble().ok()) << i;
    Run();
    EXPECT_EQ(ingest_.numbers, all) << i;
  }
  EXPECT_EQ(ingest_.repeated, 1) << "the envelope that was stored although the answer was an error";
  EXPECT_EQ(spool_->Stats().lost_records, 0u);
}

TEST_F(SenderTest, HonoursRetryAfter) {
  ingest_.Set({{429, "{}", {{"retry-after", "100"}}}, {503, "{}", {{"retry-after", "900"}}}});
  Append(1);
  auto pause = Step();
  ASSERT_TRUE(pause);
  EXPECT_GE(*pause, seconds(100));
  EXPECT_LE(*pause, seconds(110));
  EXPECT_EQ(Step(), pause) << "not before";
  EXPECT_EQ(ingest_.requests, 1);
  clock_.Advance(*pause);
  pause = Step();
  EXPECT_GE(*pause, seconds(900));
  clock_.Advance(*pause);
  EXPECT_EQ(Step(), Duration::zero());
  EXPECT_EQ(ingest_.numbers, Numbers{1});
}

TEST_F(SenderTest, BackOffGrowsWithJitter) {
  server_.reset();
  Append(1);
  std::vector<Duration> pauses;
  for (int i = 0; i < 12; ++i) {
    pauses.push_back(*Step());
    clock_.Advance(pauses.back());
  }
  double most = 1;
  for (size_t i = 0; i < pauses.size(); ++i, most = std::min(most * 2, 60.0)) {
    EXPECT_GE(ToSeconds(pauses[i]), most / 2) << i;
    EXPECT_LE(ToSeconds(pauses[i]), most) << i;
  }
  EXPECT_NE(pauses[10], pauses[11]);
}

TEST_F(SenderTest, SetsAsidePermanentlyRejectedEnvelope) {
  Numbers taken;
  int number = 0;
  for (const int code : {400, 413, 415, 422}) {
    ingest_.Set({{code, "{\"error\":\"cannot be read\"}"}});
    Append(++number);
    Append(++number);
    taken.push_back(number);
    EXPECT_EQ(Step(), Duration::zero());
    Run();
    EXPECT_EQ(ingest_.numbers, taken) << code;
  }
  EXPECT_EQ(spool_->Stats().set_aside, 4u);
  EXPECT_EQ(ingest_.lost, 4u) << "and reported to the server";
  EXPECT_NE(metrics_.Text().find("nos_telemetry_envelopes_total{result=\"set_aside\"} 4"),
            std::string::npos);
}

TEST_F(SenderTest, CountsRejectedRecordsAndContinues) {
  ingest_.Set(
      {{200, "{\"sequence\":1,\"refused\":[{\"record\":0,\"why\":\"no kind\"},7,{}]}", {}, true}});
  Append(1);
  Append(2);
  Run();
  EXPECT_EQ(ingest_.numbers, (Numbers{1, 2}));
  EXPECT_NE(metrics_.Text().find("nos_telemetry_refused_records_total 3"), std::string::npos);
}

TEST_F(SenderTest, LostAnswerCausesNoDuplicate) {
  Numbers all;
  for (int i = 0; i < 20; ++i) {
    Append(i);
    all.push_back(i);
    if (i % 3 == 0) loses_->next = 1;
    (void)Step();
    if (i % 5 == 0) Restart();  // killed between the append and the acknowledgement
  }
  Run();
  EXPECT_EQ(ingest_.numbers, all);
  EXPECT_GT(ingest_.repeated, 0);
}

TEST_F(SenderTest, UsesRotatedToken) {
  token_file_ = folder_.path() + "/token";
  std::ofstream(token_file_) << "old\n";
  ingest_.prefix = "/behind/a/proxy";
  ingest_.SetToken("old");
  Restart();
  Append(1);
  Run();
  EXPECT_EQ(ingest_.numbers, Numbers{1});
  ingest_.SetToken("new");  // the server gets the new token first
  Append(2);
  EXPECT_GT(Step(), Duration::zero());
  EXPECT_EQ(sender_->trouble().code(), Code::kPermission);
  EXPECT_EQ(sender_->trouble().message().find("old"), std::string::npos)
      << "the message contains no token";
  std::ofstream(token_file_) << "new";
  Run();
  EXPECT_EQ(ingest_.numbers, (Numbers{1, 2}));
  EXPECT_EQ(ingest_.authorization, "Bearer new");
  EXPECT_EQ(spool_->Stats().set_aside, 0u);
}

TEST_F(SenderTest, TlsVerifiesServer) {
  const Time now = SystemClock().Now();
  const auto real =
      net::IssueCertificate({"telemetry.test"}, now - hours(1), now + hours(1)).value();
  const auto other =
      net::IssueCertificate({"telemetry.test"}, now - hours(1), now + hours(1)).value();
  net::HttpServerOptions options;
  options.identity = net::TlsIdentity::Of({real.certificate, real.key}).value();
  const auto server =
      net::HttpServer::Start(options, [this](const auto& r) { return ingest_.Answer(r); }).value();
  Append(1);
  for (const auto* trusted : {&other, &real}) {
    kube::ConnectionConfig to;
    to.server = "https://127.0.0.1:" + std::to_string(server->port());
    to.tls_server_name = "telemetry.test";
    to.ca.text = trusted->authority;
    to.token.text = "secret";
    kube::HttpTransport transport(to);
    Sender sender({.cluster = "c", .source = "s"}, *spool_, transport, metrics_);
    (void)sender.Step(clock_.Now());
    ingest_.Sync();
    EXPECT_EQ(sender.trouble().ok(), trusted == &real) << sender.trouble().message();
    EXPECT_EQ(ingest_.authorization, trusted == &real ? "Bearer secret" : "");
  }
  EXPECT_EQ(ingest_.numbers, Numbers{1});
}

}  // namespace
}  // namespace nos::telemetry
