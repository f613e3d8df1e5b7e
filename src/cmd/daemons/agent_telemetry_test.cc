// Runs the agent's telemetry on simulated GPUs against a server on loopback.
#include "cmd/daemons/agent_telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>

#include "codec/gzip.h"
#include "device/shared_backend.h"
#include "device/sim_gpus.h"
#include "kubelet/testing/fake_kubelet.h"
#include "net/http_server.h"

namespace nos::cmd {
namespace {

using testing::HasSubstr;

// A telemetry server and a DCGM exporter in one.
class Outside {
 public:
  Outside()
      : server_(net::HttpServer::Start({}, [this](const auto& r) { return Answer(r); }).value()) {}
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  // Waits for an envelope that satisfies `wanted`.
  bool Comes(const std::function<bool(const Json& envelope)>& wanted) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(30),
                          [&] { return std::ranges::any_of(envelopes_, wanted); });
  }

 private:
  net::HttpResponse Answer(const net::HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    net::HttpResponse response;
    if (request.target == "/metrics") {
      response.body = "DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"x\"} 1\n";
      return response;
    }
    const auto text = Gunzip(request.body, 1 << 20);
    const auto envelope = text.ok() ? ParseJson(*text) : text.status();
    EXPECT_TRUE(envelope.ok());
    envelopes_.push_back(envelope.value_or(Json()));
    came_.notify_all();
    response.body = WriteJson(JsonObject{{"sequence", envelopes_.back().at("sequence")}});
    return response;
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Json> envelopes_;
  std::unique_ptr<net::HttpServer> server_;
};

class AgentTelemetryTest : public testing::Test {
 protected:
  AgentTelemetryTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "nos-agent-XXXXXX").string();
    folder_ = mkdtemp(folder.data());
    config_.interval = std::chrono::milliseconds(20);
    config_.delivery.spool_folder = folder_ + "/spool";
    const auto instance = gpus_.Place(0, "3g.20gb", 4).value();
    kubelet_.Assign({"ml", "train", "main", "nvidia.com/mig-3g.20gb", instance.uuid});
  }
  ~AgentTelemetryTest() override { std::filesystem::remove_all(folder_); }
  AgentSources Sources() {
    return {"gpu-1", backend_, kubelet_, gpu::Catalogue::Builtin(), health_, xids_, metrics_};
  }
  Status Refused() { return AgentTelemetry::Start(config_, Sources()).status(); }

  std::string folder_;
  AgentTelemetryConfig config_;
  kubelet::FakeKubelet kubelet_;
  device::GpuHealth health_;
  XidLog xids_;
  Metrics metrics_;
  device::SimGpus gpus_{{{gpu::Catalogue::Builtin().FindByName("A100-40GB")}}, "n"};
  device::SharedBackend backend_{gpus_};
};

TEST_F(AgentTelemetryTest, SamplesStoresAndDelivers) {
  Outside outside;
  config_.delivery.endpoint = outside.url() + "/";
  config_.delivery.cluster = "prod";
  config_.dcgm_url = outside.url() + "/metrics";
  xids_.Add({Time(), 0, 31, "a fault"});
  auto running = AgentTelemetry::Start(config_, Sources());
  ASSERT_TRUE(running.ok()) << running.status().message();
  EXPECT_TRUE(outside.Comes([](const Json& envelope) {
    const JsonArray& records = envelope.at("records").as_array();
    return FindString(envelope, "source") == "node/gpu-1" && envelope.at("sequence") == 1 &&
           FindString(records[0], "kind") == "layout" && FindString(records[1], "kind") == "xid";
  }));
  EXPECT_TRUE(outside.Comes([](const Json& envelope) { return envelope.at("sequence") == 3; }));
  running->reset();  // joins all threads
  EXPECT_THAT(metrics_.Text(), HasSubstr("DCGM_FI_DEV_POWER_USAGE{"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("pod=\"train\""));
  EXPECT_THAT(metrics_.Text(), HasSubstr("nos_telemetry_spool_envelopes "));
}

TEST_F(AgentTelemetryTest, RetriesSpoolThatFailsToOpen) {
  Outside outside;
  config_.delivery.endpoint = outside.url();
  config_.delivery.cluster = "prod";
  std::ofstream(config_.delivery.spool_folder) << "a file is in the way";
  auto running = AgentTelemetry::Start(config_, Sources());
  ASSERT_TRUE(running.ok()) << running.status().message();
  std::filesystem::remove(config_.delivery.spool_folder);
  EXPECT_TRUE(outside.Comes([](const Json& envelope) { return envelope.at("sequence") == 1; }));
}

TEST_F(AgentTelemetryTest, WritesNothingWithoutConfiguration) {
  config_.gpu_metrics = false;
  auto running = AgentTelemetry::Start(config_, Sources());
  ASSERT_TRUE(running.ok());
  running->reset();
  EXPECT_FALSE(std::filesystem::exists(config_.delivery.spool_folder));
  EXPECT_EQ(metrics_.Text().find("DCGM"), std::string::npos);
  EXPECT_EQ(metrics_.Text().find("nos_telemetry"), std::string::npos);
}

TEST_F(AgentTelemetryTest, RejectsInvalidConfigurationWithField) {
  config_.delivery.endpoint = "telemetry.test";
  EXPECT_EQ(Refused().message(), "telemetry.endpoint: it must begin with https:// (or http://)");
  config_.delivery.endpoint = "http://telemetry.test/";
  config_.delivery.token_file = "/etc/token";
  const std::string open =
      "telemetry.endpoint: a token requires https, or an address on this machine";
  EXPECT_EQ(Refused().message(), open);
  config_.delivery.endpoint = "http://127.0.0.1.evil.test/";
  EXPECT_EQ(Refused().message(), open);
  config_.delivery.endpoint = "https://telemetry.test";
  EXPECT_EQ(Refused().message(),
            "telemetry.cluster: required: name of this cluster on the telemetry server");
  config_.delivery.cluster = "prod";
  config_.delivery.key_file = "/etc/key";
  EXPECT_EQ(Refused().message(),
            "telemetry.certificateFile: certificateFile and keyFile must be set together");
  config_.delivery.endpoint = "";
  config_.dcgm_url = "localhost:9400";
  EXPECT_EQ(Refused().message(), "telemetry.dcgmUrl: must begin with http://");
}

TEST(XidLog, IsBounded) {
  XidLog log;
  for (int i = 0; i < 5000; ++i) log.Add({Time(), 0, static_cast<uint64_t>(i), ""});
  EXPECT_EQ(log.Take().size(), 1000u);
  EXPECT_TRUE(log.Take().empty());
}

}  // namespace
}  // namespace nos::cmd
