// Exports samples to a double of a receiver that rejects, fails and loses data.
#include "exports/remote_write.h"

#include <snappy.h>

#include <cstring>
#include <map>
#include <set>

#include "exports/scene_test.h"
#include "exports/write_request.h"

namespace nos::exports {
namespace {

using telemetry::EnvelopeOf, telemetry::GpuName, telemetry::InstanceName, telemetry::kReportStart;

// Decodes the wire format strictly: anything that a receiver would reject fails the test.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Bytes(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a varint without an end";
    return 0;
  }
  std::string_view Bytes(size_t count) {
    if (count > bytes_.size()) {
      ADD_FAILURE() << "cut off";
      bytes_ = {};
      return std::string_view("\0\0\0\0\0\0\0\0", 8);
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view Field(int number) {
    EXPECT_EQ(Varint(), static_cast<uint64_t>(number << 3 | 2));
    return Bytes(Varint());
  }

 private:
  std::string_view bytes_;
};

struct Written {
  std::string series;  // name{label="value",...}
  double value = 0;
  int64_t at = 0;
};

Written ReadSeries(std::string_view bytes) {
  WireReader series(bytes);
  Written written;
  std::string name, labels, last;
  while (!series.done()) {
    const uint64_t tag = series.Varint();
    WireReader field(series.Bytes(series.Varint()));
    if (tag == (1 << 3 | 2)) {
      const std::string key(field.Field(1)), value(field.Field(2));
      EXPECT_LT(last, key) << "labels are sorted and unique";
      EXPECT_FALSE(value.empty());
      last = key;
      if (key == "__name__") name = value;
      if (key != "__name__") labels += (labels.empty() ? "" : ",") + key + "=" + value;
    } else {
      EXPECT_EQ(tag, 2U << 3 | 2U);
      EXPECT_EQ(field.Varint(), 1U << 3 | 1U);
      std::memcpy(&written.value, field.Bytes(8).data(), 8);
      EXPECT_EQ(field.Varint(), 2U << 3);
      written.at = static_cast<int64_t>(field.Varint());
    }
    EXPECT_TRUE(field.done());
  }
  written.series = name + "{" + labels + "}";
  return written;
}

std::vector<Written> ReadRequest(const kube::ApiRequest& request) {
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.content_type, "application/x-protobuf");
  EXPECT_EQ(request.content_encoding, "snappy");
  std::string body;
  EXPECT_TRUE(snappy::Uncompress(request.text.data(), request.text.size(), &body));
  std::vector<Written> written;
  WireReader reader(body);
  while (!reader.done()) written.push_back(ReadSeries(reader.Field(1)));
  return written;
}

class RemoteWriteTest : public ExportScene {
 protected:
  void SetUp() override {
    ExportScene::SetUp();
    destination_ = *Destination::For({.url = "http://127.0.0.1:9/api/v1/write"}, "e");
    transport_.answer = [this](const kube::ApiRequest& request) -> Result<kube::ApiResponse> {
      const std::vector<Written> written = ReadRequest(request);
      kube::ApiResponse answer = verdict_(written);
      if (answer.code != 200) return answer;
      for (const Written& sample : written) {
        auto [place, fresh] = stored_[sample.series].emplace(sample.at, sample.value);
        EXPECT_TRUE(fresh || twice_) << sample.series << " at " << sample.at << " comes twice";
        EXPECT_TRUE(twice_ || place == std::prev(stored_[sample.series].end()))
            << sample.series << " goes back in time";
      }
      return answer;
    };
  }
  std::unique_ptr<RemoteWrite> Make(RemoteWriteOptions options = {}) {
    return std::make_unique<RemoteWrite>(std::move(options), destination_, transport_, metrics_);
  }
  void Begin(RemoteWriteOptions options = {}) {
    ExportScene::Begin(RemoteWrite::kName, Make(std::move(options)));
  }
  // Number of stored samples of series with this name prefix.
  size_t Samples(const std::string& begin = "") {
    size_t samples = 0;
    for (const auto& [series, values] : stored_) {
      if (series.starts_with(begin)) samples += values.size();
    }
    return samples;
  }
  void Gpu(int64_t sequence, telemetry::Millis at, const std::string& metric, double value) {
    const JsonObject record{{"kind", "gpu"},
                            {"at", at},
                            {"gpu", "GPU-x"},
                            {"index", 0},
                            {"metrics", {{metric, value}}}};
    ASSERT_TRUE(Take(EnvelopeOf("node/n", sequence, {record})).status.ok());
  }

  Destination destination_;
  std::function<kube::ApiResponse(const std::vector<Written>&)> verdict_ = [](const auto&) {
    return AnswerOf(200);
  };
  std::map<std::string, std::map<int64_t, double>> stored_;
  bool twice_ = false;  // samples may be delivered twice
};

TEST_F(RemoteWriteTest, SamplesHaveJoinLabels) {
  RemoteWriteOptions options;
  options.labels = *ParseLabels("region=eu, Zone=a");
  Begin(options);
  Report({1, 2, 2}, 0, 3);
  Deliver();
  const auto& power = stored_["nos_gpu_power{UUID=" + GpuName(0, 0) +
                              ",Zone=a,cluster=prod,gpu=0,modelName=NVIDIA A100-SXM4-40GB,node=" +
                              telemetry::NodeName(0) + ",region=eu}"];
  ASSERT_EQ(power.size(), 3U);
  EXPECT_EQ(power.begin()->first, kReportStart);
  EXPECT_EQ(power.begin()->second, Raw("gpu/" + GpuName(0, 0), "power")[0].mean);
  EXPECT_EQ(
      stored_["nos_instance_utilization{GPU_I_ID=1,GPU_I_PROFILE=1g.5gb,UUID=" + GpuName(0, 1) +
              ",Zone=a,cluster=prod,container=main,gpu=1,mig=" + InstanceName(0, 1, 0) +
              ",modelName=NVIDIA A100-SXM4-40GB,namespace=team-0,node=" + telemetry::NodeName(0) +
              ",pod=pod-0-1-0,region=eu}"]
          .size(),
      3U);
  EXPECT_EQ(stored_["nos_cluster_allocated{Zone=a,cluster=prod,region=eu}"].size(), 3U);
  EXPECT_EQ(Samples("nos_node_allocated{"), 3U);
  EXPECT_EQ(transport_.requests[0].path, "/api/v1/write");
  EXPECT_EQ(transport_.requests[0].headers[0].first, "X-Prometheus-Remote-Write-Version");
  EXPECT_EQ(Metric("nos_telemetry_export_lag_seconds{export=\"remoteWrite\"}"), 0);
}

TEST_F(RemoteWriteTest, ReceiverThatWasDownGetsAllSamplesOnce) {
  RemoteWriteOptions options;
  options.samples_per_request = 50;
  Begin(options);
  Report({2, 2, 2}, 0, 5);
  int calls = 0;
  verdict_ = [&](const auto&) { return AnswerOf(++calls % 3 == 0 ? 200 : 503); };
  Time now = steady_;
  Duration longest{};
  for (int i = 0; i < 500; ++i) {
    const Duration pause = exporter_->Step(now);
    longest = std::max(longest, pause);
    now += pause;
  }
  EXPECT_TRUE(exporter_->trouble().ok()) << exporter_->trouble().message();
  EXPECT_GT(longest, std::chrono::milliseconds(500));
  EXPECT_EQ(Samples("nos_gpu_power{"), 20U);  // 2 nodes, 2 GPUs, 5 reports; each sample once
  EXPECT_EQ(Samples("nos_instance_memory_used{"), 40U);
  EXPECT_GT(Metric("nos_telemetry_export_requests_total{export=\"remoteWrite\",result=\"failed\"}"),
            1);
}

TEST_F(RemoteWriteTest, RejectedSampleDoesNotBlockOthers) {
  RemoteWriteOptions options;
  options.shards = 1;
  Begin(options);
  verdict_ = [](const std::vector<Written>& written) {
    for (const Written& sample : written) {
      if (sample.value == 666) return AnswerOf(400, "out of bounds");
    }
    return AnswerOf(200);
  };
  JsonArray records;
  for (int i = 0; i < 60; ++i) {
    records.push_back({{"kind", "gpu"},
                       {"at", kReportStart},
                       {"gpu", "GPU-" + std::to_string(i)},
                       {"index", i},
                       {"metrics", {{"power", i == 17 ? 666 : i}}}});
  }
  ASSERT_TRUE(Take(EnvelopeOf("node/n", 1, records)).status.ok());
  Deliver();
  EXPECT_EQ(Samples("nos_gpu_power{"), 59U);
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"remoteWrite\",reason=\"refused\"}"),
            1);
  // A receiver that rejects everything does not receive endless retries.
  transport_.requests.clear();
  verdict_ = [](const auto&) { return AnswerOf(422); };
  Report({1, 8, 7}, 1, 1);
  Deliver();
  EXPECT_LT(transport_.requests.size(), 300U);
  EXPECT_TRUE(exporter_->trouble().ok());
}

TEST_F(RemoteWriteTest, RetriesWithRotatedToken) {
  Begin();
  Gpu(1, kReportStart, "power", 1);
  verdict_ = [](const auto&) { return AnswerOf(401, "who are you?"); };
  Deliver();
  EXPECT_EQ(exporter_->trouble().code(), Code::kUnavailable);
  EXPECT_NE(exporter_->trouble().message().find("401"), std::string::npos);
  verdict_ = [](const auto&) { return AnswerOf(200); };
  Deliver();
  EXPECT_EQ(Samples("nos_gpu_power{"), 1U);
}

TEST_F(RemoteWriteTest, HonoursRetryAfter) {
  Begin();
  Gpu(1, kReportStart, "power", 1);
  verdict_ = [](const auto&) {
    kube::ApiResponse busy = AnswerOf(429);
    busy.retry_after = std::chrono::seconds(90);
    return busy;
  };
  EXPECT_GE(exporter_->Step(steady_), std::chrono::seconds(90));
  const size_t asked = transport_.requests.size();
  exporter_->Step(steady_ + std::chrono::seconds(80));
  EXPECT_EQ(transport_.requests.size(), asked);
}

TEST_F(RemoteWriteTest, CrashLosesNoJournaledSamples) {
  twice_ = true;
  Begin();
  Report({1, 1, 1}, 0, 10);
  Deliver();
  Report({1, 1, 1}, 10, 5);
  const size_t before = Samples("nos_gpu_power{");
  EXPECT_EQ(before, 10U);
  exporter_.reset();
  Crash();
  Begin();
  EXPECT_GT(recorder_->PositionOf(RemoteWrite::kName), 0);
  transport_.requests.clear();
  Deliver();
  EXPECT_EQ(Samples("nos_gpu_power{"), 15U);
  size_t again = 0;
  for (const auto& request : transport_.requests) again += ReadRequest(request).size();
  EXPECT_LT(again, 10U * 40);  // continues from the stored position, not from the beginning
}

TEST_F(RemoteWriteTest, KeepsJournalForUnreachableReceiver) {
  verdict_ = [](const auto&) { return AnswerOf(503); };
  Begin();
  Report({1, 1, 1}, 0, 200);  // 2,000 s: three flushes
  Deliver();
  EXPECT_EQ(Samples(), 0U);
  exporter_.reset();
  Crash();
  Begin();  // flushed samples are not counted twice
  EXPECT_EQ(Raw("gpu/" + GpuName(0, 0), "power").size(), 200U);
  verdict_ = [](const auto&) { return AnswerOf(200); };
  Deliver();
  EXPECT_EQ(Samples("nos_gpu_power{"), 200U);
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"remoteWrite\",reason=\"backlog\"}"),
            -1);
  Report({1, 1, 1}, 200, 100);
  Deliver();
  auto journal = telemetryserver::JournalReader::Open(options_.store.path);
  const auto rows = journal->After(0);
  ASSERT_FALSE(rows->empty());
  EXPECT_GT(rows->front().id, 300);  // rows that all followers have are deleted
}

TEST_F(RemoteWriteTest, BoundsBacklogAndCountsDrops) {
  verdict_ = [](const auto&) { return AnswerOf(503); };
  options_.max_backlog = 20'000;
  Begin();
  Report({1, 1, 1}, 0, 200);
  verdict_ = [](const auto&) { return AnswerOf(200); };
  Deliver();
  const double dropped =
      Metric("nos_telemetry_export_dropped_total{export=\"remoteWrite\",reason=\"backlog\"}");
  EXPECT_GT(dropped, 50);
  EXPECT_LT(Samples("nos_gpu_power{"), 200U);
  EXPECT_GT(Samples("nos_gpu_power{"), 20U);
  // The store has all samples.
  EXPECT_EQ(Raw("gpu/" + GpuName(0, 0), "power").size(), 200U);
}

TEST_F(RemoteWriteTest, DropsAndCountsLateSamples) {
  Begin();
  clock_.Set(kReportStart + 10'000);
  Gpu(1, kReportStart + 10'000, "power", 1);
  Gpu(2, kReportStart, "power", 2);
  Gpu(3, kReportStart + 10'000, "temperature", 3);
  Deliver();
  EXPECT_EQ(Samples("nos_gpu_power{"), 1U);
  EXPECT_EQ(Samples("nos_gpu_temperature{"), 1U);
  EXPECT_EQ(Metric("nos_telemetry_export_dropped_total{export=\"remoteWrite\",reason=\"late\"}"),
            1);
}

TEST_F(RemoteWriteTest, ExportsOnlySelectedMetrics) {
  RemoteWriteOptions options;
  options.metrics = "nos_gpu_power, nos_cluster_*";
  Begin(options);
  Report({1, 1, 1}, 0, 2);
  Deliver();
  std::set<std::string> names;
  for (const auto& [series, values] : stored_) names.insert(series.substr(0, series.find('{')));
  EXPECT_TRUE(names.contains("nos_gpu_power"));
  EXPECT_TRUE(names.contains("nos_cluster_allocated"));
  EXPECT_FALSE(names.contains("nos_gpu_temperature"));
  EXPECT_FALSE(names.contains("nos_node_allocated"));
}

TEST(SeriesNamesTest, HolderLabelsFollowLayout) {
  SeriesNames names({});
  telemetry::Layout layout;
  layout.node = "n";
  layout.gpus.resize(1);
  layout.gpus[0].uuid = "G";
  layout.gpus[0].instances.resize(1);
  layout.gpus[0].instances[0].uuid = "M";
  layout.gpus[0].instances[0].holders = {{"a", "p", "c"}};
  names.Follow("x", layout);
  const auto value = [&](const std::string& subject, const std::string& name) {
    for (const auto& [label, text] : names.LabelsOf("x", subject)) {
      if (label == name) return text;
    }
    return std::string("none");
  };
  EXPECT_EQ(value("instance/M", "pod"), "p");
  EXPECT_EQ(value("gpu/G", "pod"), "none");
  layout.gpus[0].instances[0].holders = {{"a", "p", "c"}, {"a", "q", "c"}};
  names.Follow("x", layout);
  EXPECT_EQ(value("instance/M", "pod"), "none");  // several containers share it
  layout.gpus[0].instances.clear();
  names.Follow("x", layout);
  EXPECT_EQ(value("instance/M", "node"), "none");
  EXPECT_EQ(value("instance/M", "mig"), "M");
  EXPECT_EQ(value("quota/team/eq/nvidia.com/mig-1g.5gb", "resource"), "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(value("quota/team/eq/nvidia.com/mig-1g.5gb", "quota"), "eq");
  EXPECT_EQ(value("quota/team/eq/nvidia.com/mig-1g.5gb", "type"), "ElasticQuota");
  EXPECT_EQ(value("composite-quota/team/eq/nvidia.com/mig-1g.5gb", "resource"),
            "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(value("composite-quota/team/eq/nvidia.com/mig-1g.5gb", "type"),
            "CompositeElasticQuota");
  EXPECT_EQ(SeriesNames::MetricName("composite-quota/team/eq/x", "used"), "nos_quota_used");
}

TEST(SeriesNamesTest, RejectsInvalidLabels) {
  for (const char* text : {"a", "1a=b", "a-b=c", "__name__=x", "cluster=x", "a=1,a=2", ","}) {
    EXPECT_FALSE(ParseLabels(text).ok()) << text;
  }
  EXPECT_TRUE(ParseLabels("")->empty());
  EXPECT_EQ(ParseLabels("b=1,a=x=y")->front(),
            std::make_pair(std::string("a"), std::string("x=y")));
}

TEST(DestinationTest, RejectsSecretsOverPlainHttp) {
  const auto error = [](DestinationConfig config) {
    return Destination::For(config, "export.x").status().message();
  };
  EXPECT_EQ(error({.url = "http://10.0.0.1/w"}), "");
  EXPECT_EQ(error({.url = "http://localhost:9090/w", .token_file = "t"}), "");
  EXPECT_NE(error({.url = "http://10.0.0.1/w", .token_file = "t"}).find("require https"),
            std::string::npos);
  EXPECT_NE(error({.url = "prometheus:9090"}).find("export.x.url"), std::string::npos);
  EXPECT_EQ(error({.url = "https://u:p@h/w"}),
            "export.x.url: must be https://HOST[:PORT][/PATH], without a user or a query");
  EXPECT_NE(error({.url = "https://h", .username = "u"}).find("passwordFile"), std::string::npos);
  EXPECT_EQ(Destination::For({.url = "https://h:1/a/b"}, "x")->path(), "/a/b");
  EXPECT_EQ(Destination::For({.url = "https://h:1"}, "x")->connection().server, "https://h:1");
}

}  // namespace
}  // namespace nos::exports
