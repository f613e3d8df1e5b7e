// The API over a recorder with its own store file.
#pragma once

#include "telemetryserver/alerts.h"
#include "telemetryserver/api.h"
#include "telemetryserver/api/files.h"
#include "telemetryserver/cost.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {

class ApiTest : public RecorderFixture {
 protected:
  void SetUp() override {
    RecorderFixture::SetUp();
    Open();
    Serve();
    document_ = ParseJson(OpenApiText()).value_or(Json());
  }
  void Serve(const std::string& home = "", bool tls = false,
             size_t max_gpu_hours = Costs::kMaxGpuHours) {
    ingest_ = std::make_unique<Ingest>(*recorder_, nullptr, metrics_);
    Api::Parts parts{*recorder_,
                     *ingest_,
                     hub_,
                     gpu::Catalogue::Builtin(),
                     metrics_,
                     [this](const net::HttpRequest&) -> Result<Reader> {
                       if (reader_.user.empty()) return Status(Code::kPermission, "who are you?");
                       return reader_;
                     },
                     false,
                     "test"};
    parts.home = home;
    parts.tls = tls;
    costs_ = std::make_unique<Costs>(*recorder_, gpu::Catalogue::Builtin(), prices_, max_gpu_hours);
    parts.costs = costs_.get();
    alerts_ = std::make_unique<AlertReceiver>(
        *recorder_, [this](const net::HttpRequest&, const std::string& cluster) {
          return cluster == alerts_for_ ? Status::Ok() : Status(Code::kPermission, "who are you?");
        });
    parts.alerts = alerts_.get();
    api_ = std::make_unique<Api>(std::move(parts));
  }
  void TearDown() override {
    api_.reset();
    alerts_.reset();
    costs_.reset();
    ingest_.reset();
    RecorderFixture::TearDown();
  }
  static Json PoolRecord(telemetry::Millis at, int nodes) {
    return {{"kind", "pool"},
            {"at", at},
            {"id", "a100"},
            {"name", "a100"},
            {"gpu", {{"model", "A100-40GB"}, {"count", 8}, {"partitioning", "mig"}}},
            {"nodes", nodes},
            {"coming", 1},
            {"going", 0},
            {"max", 4},
            {"price", 12.25},
            {"state", "ready"},
            {"why", ""}};
  }
  // Adds one record of every kind to a cluster.
  void Fill() {
    JsonArray records;
    records.push_back(telemetry::PodRecord(telemetry::kReportStart, "team-0", "pod-0-0-0",
                                           "running", "nvidia.com/mig-1g.5gb",
                                           telemetry::NodeName(0)));
    records.push_back(telemetry::PodRecord(telemetry::kReportStart, "team-1", "waits", "pending",
                                           "nvidia.com/mig-3g.20gb"));
    records.push_back({{"kind", "job"},
                       {"at", telemetry::kReportStart},
                       {"id", "team-0/Job/train"},
                       {"namespace", "team-0"},
                       {"type", "Job"},
                       {"name", "train"}});
    records.push_back({{"kind", "queue"},
                       {"at", telemetry::kReportStart},
                       {"id", "LocalQueue/team-0/gpus"},
                       {"namespace", "team-0"},
                       {"name", "gpus"}});
    records.push_back({{"kind", "quota"},
                       {"at", telemetry::kReportStart},
                       {"type", "ElasticQuota"},
                       {"namespace", "team-0"},
                       {"name", "q"},
                       {"namespaces", {"team-0"}},
                       {"resources", {{"nvidia.com/gpu-memory", {{"min", 10}, {"used", 5}}}}}});
    records.push_back(PoolRecord(telemetry::kReportStart, 3));
    for (const char* state : {"planned", "applied"}) {
      records.push_back({{"kind", "decision"},
                         {"at", telemetry::kReportStart},
                         {"id", "plan-1"},
                         {"type", "plan"},
                         {"state", state},
                         {"pods",
                          {{{"namespace", "team-1"}, {"name", "waits"}},
                           {{"namespace", "team-0"}, {"name", "pod-0-0-0"}}}},
                         {"victims", JsonArray()}});
    }
    for (const auto& [ns, name] :
         std::map<std::string, std::string>{{"team-0", "pod-0-0-0"}, {"team-1", "waits"}}) {
      records.push_back({{"kind", "event"},
                         {"at", telemetry::kReportStart},
                         {"type", "Warning"},
                         {"object", {{"kind", "Pod"}, {"namespace", ns}, {"name", name}}},
                         {"reason", "FailedScheduling"},
                         {"message", "\"<script>\""}});
    }
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, records)).status.ok());
    Report({1, 2, 7}, 0, 7);
  }
  net::HttpResponse Ask(const std::string& target, const std::string& method = "GET",
                        const std::string& body = "", const net::HttpHeaders& headers = {}) {
    return api_->Answer({method, target, headers, body});
  }
  // The data of the first event of this type in a stream; null if there is none.
  static Json DataOf(std::string_view stream, std::string_view event) {
    const std::string start = "event: " + std::string(event) + "\ndata: ";
    const size_t at = stream.find(start);
    if (at == std::string_view::npos) return {};
    const std::string_view data = stream.substr(at + start.size());
    return ParseJson(data.substr(0, data.find('\n'))).value_or(Json());
  }
  Json Get(const std::string& target, int code = 200) {
    const net::HttpResponse response = Ask(target);
    EXPECT_EQ(response.code, code) << target << ": " << response.body;
    const auto json = ParseJson(response.body);
    EXPECT_TRUE(json.ok()) << target << ": " << response.body.substr(0, 300);
    return json.value_or(Json());
  }

  Reader reader_{"root", true, {}};
  StreamHub hub_{std::chrono::milliseconds(1)};
  PriceList prices_{"EUR", "", {{.per_gpu_hour = 2'500'000}}};
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<Costs> costs_;
  std::unique_ptr<AlertReceiver> alerts_;
  std::string alerts_for_ = "prod";
  std::unique_ptr<Api> api_;
  Json document_;
};

}  // namespace nos::telemetryserver
