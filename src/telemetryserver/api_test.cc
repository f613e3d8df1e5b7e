#include "telemetryserver/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <semaphore>
#include <thread>
#include <vector>

#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

// Returns how a value violates a schema of the document, or "". Members that the schema does not
// name are violations if it lists `properties`, except in records.
std::string Fault(const Json& document, const Json& schema, const Json& value,
                  const std::string& where) {
  if (const std::string_view ref = FindString(schema, "$ref"); !ref.empty()) {
    const std::string_view name = ref.substr(ref.rfind('/') + 1);
    const Json* target = Find(document, "components", "schemas", name);
    return target == nullptr ? where + ": no schema " + std::string(name)
                             : Fault(document, *target, value, where);
  }
  const Json* types = Find(schema, "type");
  if (types == nullptr) return "";
  const auto is = [&](std::string_view type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_bool()
           : type == "integer" ? value.is_int64() || value.is_uint64()
           : type == "number"  ? value.is_number()
           : type == "null"    ? value.is_null()
                               : false;
  };
  bool fits = false;
  if (types->is_string()) fits = is(View(types->get_string()));
  if (types->is_array()) {
    for (const Json& type : types->get_array()) fits = fits || is(View(type.get_string()));
  }
  if (!fits) return where + " is not of type " + WriteJson(*types) + ": " + WriteJson(value);
  if (const Json* items = Find(schema, "items"); items != nullptr && value.is_array()) {
    for (const Json& item : value.get_array()) {
      const std::string fault = Fault(document, *items, item, where + "[]");
      if (!fault.empty()) return fault;
    }
  }
  const Json* properties = Find(schema, "properties");
  if (properties == nullptr || !value.is_object()) return "";
  for (const Json& name : Find(schema, "required")->get_array()) {
    if (!value.get_object().contains(name.get_string())) {
      return where + " lacks " + WriteJson(name);
    }
  }
  for (const auto& [name, member] : value.get_object()) {
    const Json* known = properties->get_object().if_contains(name);
    if (known == nullptr) continue;
    const std::string fault = Fault(document, *known, member, where + "." + std::string(name));
    if (!fault.empty()) return fault;
  }
  return "";
}

TEST_F(ApiTest, OpenApiListsExactlyAllRoutes) {
  std::set<std::string> described, served;
  const Json* paths = Find(document_, "paths");
  ASSERT_NE(paths, nullptr);
  for (const auto& [path, methods] : paths->get_object()) {
    for (const auto& [method, about] : methods.get_object()) {
      described.insert((method == "get" ? "GET " : "POST ") + std::string(path));
    }
  }
  for (const std::string& route : Api::Routes()) served.insert(route);
  EXPECT_EQ(described, served);
}

TEST_F(ApiTest, AnswersMatchOpenApi) {
  Fill();
  ASSERT_EQ(
      Ask("/api/v1/alerts", "POST",
          R"({"version": "4", "alerts": [{"status": "firing", "labels": {"alertname": "A"}}]})",
          {{"content-type", "application/json"}})
          .code,
      200);
  const std::map<std::string, std::string> targets = {
      {"/api/v1/session", ""},
      {"/api/v1/overview", ""},
      {"/api/v1/gpus", ""},
      {"/api/v1/workloads", ""},
      {"/api/v1/workloads/{namespace}/{name}", "/api/v1/workloads/team-0/pod-0-0-0"},
      {"/api/v1/decisions", ""},
      {"/api/v1/stories", ""},
      {"/api/v1/quotas", ""},
      {"/api/v1/jobs", ""},
      {"/api/v1/pools", ""},
      {"/api/v1/series", "/api/v1/series?metric=allocated&from=1763760000000&to=1763760060000"},
      {"/api/v1/cost", "/api/v1/cost?from=1763760000000"},
      {"/api/v1/cost-forecast", ""},
      {"/api/v1/savings", ""},
      {"/api/v1/alerts", ""},
      {"/api/v1/history", ""}};
  for (const auto& [path, target] : targets) {
    const Json answer = Get(target.empty() ? path : target);
    const Json* content =
        Find(document_, "paths", path, "get", "responses", "200", "content", "application/json");
    ASSERT_NE(content, nullptr) << path;
    EXPECT_EQ(Fault(document_, *Find(*content, "schema"), answer, path), "");
    // The answer has content: none of its lists is empty.
    for (const auto& [name, member] : answer.get_object()) {
      EXPECT_FALSE(member.is_array() && member.get_array().empty()) << path << " " << name;
    }
    const Json error = Get(path + "x", 404);
    EXPECT_FALSE(FindString(error, "error").empty());
  }
}

TEST_F(ApiTest, SeriesCombineDiskAndMemory) {
  Report({1, 1, 1}, 0, 100);  // 1,000 s: a flush and the rest
  const std::string window = "&from=1763760000000&to=1763761000000";
  const Json raw = Get("/api/v1/series?metric=memory_total&points=100&subject=gpu/" +
                       telemetry::GpuName(0, 0) + window);
  EXPECT_EQ(telemetry::IntegerOr(raw, "step", 0), 10'000);
  const JsonArray& mean = Find(Find(raw, "series")->get_array()[0], "mean")->get_array();
  ASSERT_EQ(mean.size(), 100U);
  for (const Json& value : mean) EXPECT_EQ(value.to_number<double>(), 40960);
  // The series of a pod is that of its slice.
  const Json pod = Get("/api/v1/series?metric=utilization&subject=pod/team-0/pod-0-0-0" + window);
  const Json slice = Get("/api/v1/series?metric=utilization&subject=instance/" +
                         telemetry::InstanceName(0, 0, 0) + window);
  EXPECT_EQ(*Find(Find(pod, "series")->get_array()[0], "mean"),
            *Find(Find(slice, "series")->get_array()[0], "mean"));
  EXPECT_EQ(FindString(pod, "unit"), "ratio");
  for (const char* bad : {"?metric=x&from=5&to=4", "?from=1", "?metric=x&points=2001",
                          "?metric=x&from=-1", "?metric=x&subject=pod/a"}) {
    Get(std::string("/api/v1/series") + bad, 400);
  }
}

TEST_F(ApiTest, ReadersSeeOnlyTheirNamespaces) {
  Fill();
  reader_ = {"kim", false, {"team-1"}};
  for (const char* target :
       {"/api/v1/gpus", "/api/v1/workloads", "/api/v1/decisions", "/api/v1/stories",
        "/api/v1/quotas", "/api/v1/history", "/api/v1/jobs", "/api/v1/workloads?namespace=team-0",
        "/api/v1/gpus?at=1763760050000", "/api/v1/workloads/team-1/waits"}) {
    const net::HttpResponse response = Ask(target);
    EXPECT_EQ(response.code, 200) << target;
    EXPECT_EQ(response.body.find("team-0"), std::string::npos) << target << response.body;
  }
  EXPECT_NE(Ask("/api/v1/gpus").body.find("pod-0-0-1"), std::string::npos);
  EXPECT_NE(Ask("/api/v1/history").body.find("FailedScheduling"), std::string::npos);
  Get("/api/v1/overview", 403);
  Get("/api/v1/pools", 403);
  Get("/api/v1/workloads/team-0/pod-0-0-0", 403);
  Get("/api/v1/series?metric=utilization&subject=pod/team-0/pod-0-0-0", 403);
  Get("/api/v1/series?metric=power&subject=gpu/" + telemetry::GpuName(0, 0), 403);
  Get("/api/v1/series?metric=allocated", 403);
  Get("/api/v1/series?metric=used&subject=quota/team-0/q/nvidia.com/gpu-memory", 403);
  Get("/api/v1/series?metric=utilization&subject=pod/team-1/pod-0-0-1", 200);
  reader_ = {};
  Get("/api/v1/gpus", 401);
}

TEST_F(ApiTest, CompressesLargeAnswersForClientsThatAcceptIt) {
  Fill();
  const std::string plain = Ask("/api/v1/gpus").body;
  ASSERT_GT(plain.size(), 2000U);
  const auto encoding = [](const net::HttpResponse& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Content-Encoding") return value;
    }
    return std::string();
  };
  for (const char* accepted : {"gzip", "br, GZIP;q=0.5", "gzip, deflate, br", "*", "*;q=0, gzip"}) {
    const auto response = Ask("/api/v1/gpus", "GET", "", {{"accept-encoding", accepted}});
    EXPECT_EQ(encoding(response), "gzip") << accepted;
    EXPECT_LT(response.body.size(), plain.size() / 2);
    EXPECT_EQ(Gunzip(response.body, plain.size()).value_or(std::string()), plain) << accepted;
  }
  for (const char* accepted :
       {"", "br", "gzip;q=0", "gzip; q=0.0, *", "x-gzip2", "identity, *;q=0"}) {
    const auto response = Ask("/api/v1/gpus", "GET", "", {{"accept-encoding", accepted}});
    EXPECT_EQ(encoding(response), "") << accepted;
    EXPECT_EQ(response.body, plain) << accepted;
  }
  EXPECT_EQ(encoding(Ask("/api/v1/session", "GET", "", {{"accept-encoding", "gzip"}})), "")
      << "too small to gain";
}

// The layouts of 40 nodes in 100 minutes have some megabytes.
TEST_F(ApiTest, CompressesAnswersOfMegabytes) {
  Report({250, 8, 7}, 0, 1);
  const auto response =
      Ask("/api/v1/history?kind=layout&limit=10000", "GET", "", {{"accept-encoding", "gzip"}});
  const auto text = Gunzip(response.body, size_t{1} << 30);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_GT(text->size(), size_t{2} << 20);
  EXPECT_LT(response.body.size(), text->size() / 4);
}

TEST_F(ApiTest, AnswersInvalidRequestsWithErrors) {
  Get("/api/v1/gpus", 404);  // no report has arrived yet
  Fill();
  Get("/api/v1/gpus?cluster=other", 404);
  Get("/api/v1/gpus?at=yesterday", 400);
  Get("/api/v1/nothing", 404);
  Get("/api/v1/../../etc/passwd", 400);
  Get("/%2e%2e/etc/passwd", 400);
  Get("/etc/passwd", 404);
  EXPECT_EQ(Ask("/api/v1/gpus", "DELETE").code, 405);
  EXPECT_EQ(Ask("/api/v1/ingest").code, 405);
  EXPECT_EQ(Ask("/", "POST").code, 405);
  EXPECT_EQ(Ask("/").code, 200);
}

TEST_F(ApiTest, AcceptsGzipAndPlainEnvelopes) {
  const std::string text =
      WriteJson(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1));
  const std::string path = "/api/v1/ingest";
  EXPECT_EQ(Ask(path, "POST", text).body, "{\"sequence\":1,\"refused\":[]}");
  EXPECT_EQ(Ask(path, "POST", Gzip(text), {{"content-encoding", "gzip"}}).code, 200);
  EXPECT_EQ(Ask(path, "POST", text, {{"content-encoding", "gzip"}}).code, 400);
  EXPECT_EQ(Ask(path, "POST", text, {{"content-encoding", "br"}}).code, 415);
  EXPECT_EQ(Ask(path, "POST", "{}").code, 400);
  EXPECT_EQ(Ask(path, "POST", Gzip(std::string(telemetry::kMaxEnvelopeBytes + 1, ' ')),
                {{"content-encoding", "gzip"}})
                .code,
            413);
}

TEST_F(ApiTest, BrowsersComeBackOverTlsOnly) {
  const auto count = [&] {
    const net::HttpResponse page = api_->Answer({"GET", "/", {}, ""});
    return std::ranges::count(page.headers, std::pair<std::string, std::string>(
                                                "Strict-Transport-Security", "max-age=31536000"));
  };
  EXPECT_EQ(count(), 0);
  Serve("", true);
  EXPECT_EQ(count(), 1);
}

// 32 KiB that would become 400 MiB of values.
TEST_F(ApiTest, IngestRefusesTextOfVeryManyValues) {
  std::string text = R"({"schema":1,"cluster":"prod","source":"node/n","boot":"b","sequence":1,)";
  text += R"("records":[1)";
  while (text.size() < telemetry::kMaxEnvelopeBytes - 16) text += ",1";
  net::HttpRequest request{
      "POST", "/api/v1/ingest", {{"content-encoding", "gzip"}}, Gzip(text + "]}", 9)};
  EXPECT_LT(request.body.size(), size_t{40} << 10);
  const net::HttpResponse response = ingest_->Answer(request);
  EXPECT_EQ(response.code, 413);
  EXPECT_EQ(response.body, "{\"error\":\"envelope: more than 2000000 values\"}\n");
}

TEST_F(ApiTest, IngestHoldsNodeThatSendsTooMuch) {
  const auto report = [&](const std::string& source, size_t padding, int number) {
    Json envelope = telemetry::EnvelopeOf(source, number, {});
    envelope.get_object()["padding"] = std::string(padding, ' ');
    return Ask("/api/v1/ingest", "POST", Gzip(WriteJson(envelope)), {{"content-encoding", "gzip"}});
  };
  const size_t large = telemetry::kMaxEnvelopeBytes - 1000;
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(report("node/thief", large, i).code, 200) << "its backlog";
  const net::HttpResponse held = report("node/thief", 0, 4);
  EXPECT_EQ(held.code, 429);
  EXPECT_EQ(held.body, "{\"error\":\"node/thief sends more than 64 KiB a second\"}\n");
  EXPECT_THAT(held.headers, testing::Contains(testing::Pair("Retry-After", "60")));
  EXPECT_EQ(report("node/b", 0, 1).code, 200);
  EXPECT_EQ(report("cluster", large, 1).code, 200) << "the cluster's reporter is no node";
}

// Readers need the other threads of the server.
TEST_F(ApiTest, IngestTakesOnlyPartOfTheThreads) {
  std::promise<void> goes_on;
  const std::shared_future<void> waits = goes_on.get_future().share();
  std::counting_semaphore<> under_way(0);
  Ingest slow(
      *recorder_,
      [&](const net::HttpRequest&, const telemetry::Envelope*) {
        under_way.release();
        waits.wait();
        return Status(Code::kPermission, "not you");
      },
      metrics_);
  const net::HttpRequest request{"POST", "/api/v1/ingest", {}, "{}"};
  std::vector<std::thread> reporters;
  for (size_t i = 0; i < kMaxIngests; ++i) {
    reporters.emplace_back([&] { EXPECT_EQ(slow.Answer(request).code, 401); });
  }
  for (size_t i = 0; i < kMaxIngests; ++i) under_way.acquire();
  EXPECT_EQ(slow.Answer(request).code, 503);
  goes_on.set_value();
  for (std::thread& reporter : reporters) reporter.join();
}

TEST_F(ApiTest, IngestRequiresTokenOfCluster) {
  Tokens tokens;
  ASSERT_TRUE(tokens.Read("# ours\nprod  0123456789abcdef\nother\tfedcba9876543210\n").ok());
  EXPECT_FALSE(tokens.Read("prod short").ok());
  EXPECT_FALSE(tokens.empty()) << "the previous tokens stay";
  Ingest guarded(
      *recorder_,
      [&](const net::HttpRequest& request, const telemetry::Envelope* envelope) {
        return tokens.Check(request.Header("authorization"),
                            envelope == nullptr ? "" : envelope->cluster);
      },
      metrics_);
  const std::string text =
      WriteJson(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1));
  const auto code = [&](const std::string& authorization) {
    net::HttpHeaders headers;
    if (!authorization.empty()) headers.emplace_back("authorization", authorization);
    return guarded.Answer({"POST", "/api/v1/ingest", headers, text}).code;
  };
  EXPECT_EQ(code(""), 401);
  EXPECT_EQ(code("Basic 0123456789abcdef"), 401);
  EXPECT_EQ(code("Bearer 0123456789abcdeg"), 401);
  EXPECT_EQ(code("Bearer fedcba9876543210"), 403);
  EXPECT_EQ(code("Bearer 0123456789abcdef"), 200);
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_TRUE(recorder_->Clusters() == std::vector<std::string>{"prod"});
  ASSERT_TRUE(tokens.Read("* 0123456789abcdef").ok());
  EXPECT_EQ(code("Bearer 0123456789abcdef"), 200);
}

// Reads a stream until no more data is available.
std::string Drain(net::BodyStream& stream) {
  std::string all;
  for (std::string part = "x"; !part.empty(); all += part) {
    part.clear();
    EXPECT_TRUE(stream.Read(part));
  }
  return all;
}

std::string LastId(const std::string& events) {
  const size_t at = events.rfind("id: ") + 4;
  return events.substr(at, events.find('\n', at) - at);
}

TEST_F(ApiTest, AnswersRepeatedSubjectOnce) {
  Fill();
  const Json twice = Get("/api/v1/series?metric=allocated&subject=cluster&subject=cluster");
  EXPECT_EQ(Find(twice, "series")->get_array().size(), 1U);
}

// A whole GPU counts as many slots as a GPU in MIG mode, for the node and for the cluster.
TEST_F(ApiTest, NodeShareIsMeanOfItsGpus) {
  JsonArray records;
  Json layout =
      telemetry::NodeReport({1, 2, 1}, 0, telemetry::kReportStart, 1).at("records").get_array()[0];
  Json& whole = layout.get_object()["gpus"].get_array()[1];
  whole.get_object()["slots"] = 0;
  whole.get_object()["mig"] = false;
  whole.get_object()["instances"] = JsonArray();
  whole.get_object()["holders"] = JsonArray{{{"namespace", "a"}, {"pod", "p"}, {"container", "c"}}};
  layout.get_object()["gpus"].get_array()[0].get_object()["instances"] = JsonArray();
  records.push_back(layout);
  ASSERT_TRUE(
      Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(0), 1, records)).status.ok());
  for (int i = 1; i < 4; ++i) {
    clock_.Set(telemetry::kReportStart + i * int64_t{10'000});
    ASSERT_TRUE(
        Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(0), i + 1, {})).status.ok());
  }
  ASSERT_TRUE(recorder_->Settle().ok());
  const std::string window = "&from=1763760000000&to=1763760100000&points=1&subject=";
  for (const std::string& subject : {std::string("cluster"), "node/" + telemetry::NodeName(0)}) {
    const Json series = Get("/api/v1/series?metric=allocated" + window + subject);
    const JsonArray& max = Find(Find(series, "series")->get_array()[0], "max")->get_array();
    ASSERT_FALSE(max.empty());
    EXPECT_DOUBLE_EQ(max[0].to_number<double>(), 0.5) << subject;
  }
}

// Container restarts and missed reports do not create a second holder.
TEST_F(ApiTest, SliceHeldAgainCountsOnce) {
  Json layout =
      telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1).at("records").get_array()[0];
  const JsonArray holders = {{{"namespace", "a"}, {"pod", "web-0"}, {"container", "c"}}};
  for (int i = 0; i < 30; ++i) {
    const telemetry::Millis at = telemetry::kReportStart + i * int64_t{10'000};
    clock_.Set(at);
    Json& gpu = layout.get_object()["gpus"].get_array()[0];
    gpu.get_object()["instances"].get_array()[0].get_object()["holders"] =
        i % 10 < 4 ? JsonArray() : holders;  // no holder for 40 s
    layout.get_object()["at"] = at;
    JsonArray records;
    records.push_back(layout);
    records.push_back({{"kind", "instance"},
                       {"at", at},
                       {"instance", telemetry::InstanceName(0, 0, 0)},
                       {"gpu", telemetry::GpuName(0, 0)},
                       {"metrics", {{"memory_used", 1000}, {"utilization", 0.5}}}});
    ASSERT_TRUE(
        Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(0), i + 1, records)).status.ok());
  }
  ASSERT_TRUE(recorder_->Settle().ok());
  const std::string window = "&from=1763760000000&to=1763760300000&subject=pod/a/web-0";
  for (const char* points : {"30", "4", "1"}) {
    const Json series =
        Get("/api/v1/series?metric=memory_used&points=" + std::string(points) + window);
    const Json& one = Find(series, "series")->get_array()[0];
    for (const char* column : {"mean", "max"}) {
      int values = 0;
      for (const Json& value : Find(one, column)->get_array()) {
        if (value.is_null()) continue;
        EXPECT_DOUBLE_EQ(value.to_number<double>(), 1000) << points << column;
        ++values;
      }
      EXPECT_GT(values, 0) << points;
    }
  }
}

TEST_F(ApiTest, StreamSendsChanges) {
  Fill();
  auto stream = std::move(Ask("/api/v1/stream").stream);
  ASSERT_NE(stream, nullptr);
  const std::string hello = Drain(*stream);
  EXPECT_TRUE(hello.starts_with("event: hello\n")) << hello;
  EXPECT_EQ(hello.find("event: gpus"), std::string::npos);
  JsonArray records;
  records.push_back(telemetry::PodRecord(telemetry::kReportStart + 80'000, "team-1", "waits",
                                         "running", "nvidia.com/mig-3g.20gb",
                                         telemetry::NodeName(0)));
  records.push_back({{"kind", "removed"},
                     {"at", telemetry::kReportStart + 80'000},
                     {"what", "pod"},
                     {"uid", "uid-team-0-pod-0-0-0"}});
  records.push_back(
      {{"kind", "decision"}, {"at", telemetry::kReportStart + 80'000}, {"id", "plan-2"}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, records)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const std::string changes = Drain(*stream);
  const Json workloads = DataOf(changes, "workloads");
  EXPECT_EQ(workloads.at("changed").at(0).at("kind"), "pod") << changes;
  EXPECT_EQ(workloads.at("removed"), Json(JsonArray{"uid-team-0-pod-0-0-0"})) << changes;
  EXPECT_EQ(DataOf(changes, "decision").at("kind"), "decision") << changes;
  EXPECT_FALSE(FindString(DataOf(changes, "decision"), "story", "sentence").empty()) << changes;
  EXPECT_NE(changes.find("event: overview\n"), std::string::npos);
  // A client that reconnects with its last event ID receives what it missed.
  const auto resumed = [&](const std::string& id) {
    auto again = std::move(Ask("/api/v1/stream", "GET", "", {{"last-event-id", id}}).stream);
    return Drain(*again);
  };
  EXPECT_NE(resumed(LastId(hello)).find("event: decision\n"), std::string::npos);
  EXPECT_EQ(resumed(LastId(changes)).find("event: decision\n"), std::string::npos);
  EXPECT_EQ(resumed(LastId(changes)).find("event: reset\n"), std::string::npos);
  EXPECT_NE(resumed("0123456789abcdef.7").find("event: reset\n"), std::string::npos);
}

// A client must drop removed nodes, also after a reconnect.
TEST_F(ApiTest, StreamSendsRemainingNodesAfterRemoval) {
  Fill();
  auto stream = std::move(Ask("/api/v1/stream").stream);
  const std::string hello = Drain(*stream);
  const auto report = [&](int64_t sequence, const char* kind) {
    JsonArray records;
    records.push_back({{"kind", kind},
                       {"at", telemetry::kReportStart + 80'000},
                       {"what", "node"},
                       {"id", kind == std::string("removed") ? telemetry::NodeName(0) : "plan-9"}});
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", sequence, records)).status.ok());
    ASSERT_TRUE(recorder_->Settle().ok());
  };
  report(2, "decision");
  EXPECT_NE(Drain(*stream).find("\"all\":[\"" + telemetry::NodeName(0) + "\"]"), std::string::npos);
  report(3, "decision");
  EXPECT_EQ(Drain(*stream).find("\"all\""), std::string::npos) << "the nodes are the same";
  report(4, "removed");
  EXPECT_NE(Drain(*stream).find("\"all\":[]"), std::string::npos);
  // A client that reconnects may have seen the node before.
  auto again =
      std::move(Ask("/api/v1/stream", "GET", "", {{"last-event-id", LastId(hello)}}).stream);
  EXPECT_NE(Drain(*again).find("\"all\":[]"), std::string::npos);
}

TEST_F(ApiTest, LimitsStreamsPerReader) {
  Fill();
  std::vector<std::unique_ptr<net::BodyStream>> streams;
  for (size_t i = 0; i < kMaxStreamsOfOne; ++i) {
    streams.push_back(std::move(Ask("/api/v1/stream").stream));
    ASSERT_NE(streams.back(), nullptr);
  }
  EXPECT_EQ(Ask("/api/v1/stream").code, 429);
  streams.pop_back();
  EXPECT_NE(Ask("/api/v1/stream").stream, nullptr);
}

TEST_F(ApiTest, ChangeWakesStream) {
  StreamHub hub(std::chrono::milliseconds(1));
  std::mutex mutex;
  std::condition_variable changed;
  int woken = 0;
  const auto wake = [&] {
    const std::scoped_lock lock(mutex);
    ++woken;
    changed.notify_all();
  };
  const uint64_t number = hub.Subscribe(hub.changes(), wake);
  hub.Changed();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return woken == 1; });
  }
  hub.Unsubscribe(number);
  hub.Subscribe(0, wake);  // one change happened before
  EXPECT_EQ(woken, 2);
}

// Namespaces of readers belong to cluster lab, which has not reported yet.
TEST_F(ApiTest, HidesReportingClusterFromReadersOfAnother) {
  Fill();
  reader_ = {"kim", false, {"team-0"}};
  Get("/api/v1/workloads", 200);
  Serve("lab");
  Get("/api/v1/workloads", 403);
  EXPECT_TRUE(Find(Get("/api/v1/session"), "clusters")->get_array().empty());
}

}  // namespace
}  // namespace nos::telemetryserver
