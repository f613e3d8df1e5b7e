// Reading of a Snapshot: which errors are kept, what a command without rights sees.
#include "cmd/clustercheck/reader.h"

#include <gtest/gtest.h>

#include "cmd/clustercheck/topics.h"
#include "kube/testing/fake_api.h"

namespace nos::cmd {
namespace {

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    api_.intercept = [this](const kube::ApiRequest& request) { return Answer(request); };
  }
  std::optional<Result<kube::ApiResponse>> Answer(const kube::ApiRequest& request) {
    const auto has = [&](std::string_view part) {
      return request.path.find(part) != std::string::npos;
    };
    if (has("/version")) {
      return kube::ApiResponse{200, JsonObject{{"gitVersion", "v1.34.2"}}};
    }
    if (!forbidden_.empty() && has(forbidden_)) {
      return kube::ApiResponse{403, JsonObject{{"message", "you may not"}}};
    }
    if (has("clusterpolicies")) {
      return kube::ApiResponse{404, JsonObject{{"message", "no such kind"}}};
    }
    if (has("/proxy/")) {
      proxied_.push_back(request.path);
      return kube::ApiResponse{200, {}, {}, "nos_telemetry_nodes 1\n"};
    }
    if (has("accessreviews")) {
      reviews_.push_back(request.body);
      return kube::ApiResponse{201, JsonObject{{"status", JsonObject{{"allowed", true}}}}};
    }
    return std::nullopt;
  }
  Snapshot Look() { return ReadSnapshot(api_, "", Time()).value(); }

  kube::FakeApi api_;
  std::string forbidden_;
  std::vector<Json> reviews_;
  std::vector<std::string> proxied_;
};

const char* const kAgent = R"({"kind": "DaemonSet", "apiVersion": "apps/v1",
  "metadata": {"namespace": "nos-system", "name": "nos-mig-agent"},
  "spec": {"template": {"spec": {"serviceAccountName": "nos-mig-agent",
    "containers": [{"name": "agent", "image": "nos:0.1.0", "args": ["agent", "--config", "/f"]}],
    "volumes": [{"name": "config", "configMap": {"name": "nos-mig-agent"}}]}}},
  "status": {"desiredNumberScheduled": 1, "numberReady": 1}})";

TEST_F(ReaderTest, ReadsObjectsAndConfigurationAndAsksForRights) {
  api_.Put(*ParseJson(kAgent));
  api_.Put(*ParseJson(R"({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "gpu-1"}})"));
  api_.Put(*ParseJson(R"({"kind": "ConfigMap", "apiVersion": "v1",
    "metadata": {"namespace": "nos-system", "name": "nos-mig-agent"},
    "data": {"config.yaml": "apiVersion: config.nos.nebuly.com/v1alpha1\nkind: MigAgentConfig\ndevicePlugin: {mode: nvidia}\n",
             "broken.yaml": "a: [", "other.yaml": "kind: ConfigMap"}})"));
  const Snapshot snapshot = Look();
  EXPECT_EQ(*snapshot.server_version, "v1.34.2");
  EXPECT_EQ(snapshot.nodes.items.size(), 1u);
  EXPECT_EQ(snapshot.Running("agent").size(), 1u);
  EXPECT_EQ(snapshot.AgentConfig("devicePlugin", "mode"), "nvidia");
  EXPECT_FALSE(snapshot.cluster_policies.served());
  size_t of_agent = 0;
  for (const Json& review : reviews_) {
    if (FindString(review, "spec", "user") == "system:serviceaccount:nos-system:nos-mig-agent") {
      ++of_agent;
      EXPECT_EQ(Find(review, "spec", "groups")->get_array().at(2),
                "system:serviceaccounts:nos-system");
    }
  }
  EXPECT_GT(of_agent, 5u);
  EXPECT_GT(reviews_.size(), of_agent);
}

TEST_F(ReaderTest, WritesNothingButQuestions) {
  api_.Put(*ParseJson(kAgent));
  (void)Look();
  for (const kube::ApiRequest& write : api_.writes) {
    EXPECT_TRUE(write.path.ends_with("subjectaccessreviews")) << write.path;
  }
}

TEST_F(ReaderTest, ReadsMetricsOfTheTelemetryServer) {
  EXPECT_EQ(Look().telemetry_metrics.status().code(), Code::kNotFound);
  EXPECT_TRUE(proxied_.empty());
  api_.Put(*ParseJson(R"({"kind": "StatefulSet", "apiVersion": "apps/v1",
    "metadata": {"namespace": "nos-system", "name": "nos-telemetry"},
    "spec": {"template": {"spec": {"containers": [
      {"name": "telemetry", "image": "nos:0.1.0", "args": ["telemetry", "--config", "/f"]}]}}}})"));
  EXPECT_EQ(Look().telemetry_metrics.value(), "nos_telemetry_nodes 1\n");
  EXPECT_EQ(proxied_, std::vector<std::string>{"/api/v1/namespaces/nos-system/services/"
                                               "nos-telemetry-metrics:metrics/proxy/metrics"});
  forbidden_ = "/proxy/";
  const Status forbidden = Look().telemetry_metrics.status();
  EXPECT_EQ(forbidden.code(), Code::kPermission);
  EXPECT_EQ(forbidden.message(), "you may not");
}

TEST_F(ReaderTest, AForbiddenKindIsNotChecked) {
  forbidden_ = "/api/v1/nodes";
  const Snapshot snapshot = Look();
  EXPECT_EQ(snapshot.nodes.status.code(), Code::kPermission);
  EXPECT_TRUE(snapshot.pods.status.ok());
  for (const Finding& finding : CheckCluster(snapshot)) {
    if (finding.code != "NodesLabelled") continue;
    EXPECT_EQ(finding.verdict, Verdict::kNotChecked);
  }
}

TEST_F(ReaderTest, AServerThatDoesNotAnswerIsAnError) {
  api_.intercept = [](const kube::ApiRequest&) -> std::optional<Result<kube::ApiResponse>> {
    return Result<kube::ApiResponse>(Status(Code::kUnavailable, "connection refused"));
  };
  EXPECT_EQ(ReadSnapshot(api_, "", Time()).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace nos::cmd
