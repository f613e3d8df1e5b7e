// The checks of a cluster, on objects as an API server has them. Asserts on codes and verdicts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cmd/clustercheck/topics.h"
#include "codec/json.h"

namespace nos::cmd {
namespace {

// A cluster on which everything is as it should be; tests change one thing.
class ClusterCheck : public ::testing::Test {
 protected:
  ClusterCheck() {
    state_.now = *ParseTime("2026-01-02T03:04:05Z");
    state_.own_version = "0.1.0";
    state_.server_version = std::string("v1.34.2");
    state_.cluster_policies.status = NotFound("no such kind");
    Daemon("Deployment", "nos-gpu-partitioner", "partitioner", 2, 2);
    Daemon("Deployment", "nos-scheduler", "scheduler", 2, 2);
    Daemon("Deployment", "nos-operator", "operator", 2, 2);
    Daemon("DaemonSet", "nos-mig-agent", "agent", 1, 1);
    for (const char* lease :
         {"gpu-partitioner.nebuly.com", "nos-scheduler", "operator.nos.nebuly.com"}) {
      Add(R"({"kind": "Lease", "metadata": {"namespace": "nos-system", "name": ")" +
          std::string(lease) +
          R"("}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15,
              "renewTime": "2026-01-02T03:04:00.000000Z"}})");
    }
    for (const char* kind : {"elasticquotas", "compositeelasticquotas"}) {
      Add(R"({"kind": "CustomResourceDefinition", "metadata": {"name": ")" + std::string(kind) +
          R"(.nos.nebuly.com"}, "spec": {"versions": [{"name": "v1alpha1", "served": true}]},
              "status": {"conditions": [{"type": "Established", "status": "True"}]}})");
    }
    Add(R"({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "nos-operator"},
            "webhooks": [{"name": "quotas.nos.nebuly.com", "failurePolicy": "Ignore",
                          "clientConfig": {"caBundle": "QQ==", "service": {
                              "namespace": "nos-system", "name": "nos-operator-webhook"}}}]})");
    Add(R"({"kind": "EndpointSlice", "metadata": {"namespace": "nos-system", "labels": {
            "kubernetes.io/service-name": "nos-operator-webhook"}},
            "endpoints": [{"conditions": {"ready": true}}]})");
    Config("nos-mig-agent", R"({"kind": "MigAgentConfig", "devicePlugin": {"mode": "builtin"},
           "telemetry": {"endpoint": ""}})");
    Node("gpu-1", R"("nos.nebuly.com/gpu-partitioning": "mig")");
    AgentPod("gpu-1", true);
    state_.access = RightsToAskFor(state_);
    for (AccessFacts& one : state_.access) one.allowed = true;
  }

  void Add(const std::string& object) {
    const auto json = ParseJson(object);
    ASSERT_TRUE(json.ok()) << json.status().message() << object;
    Take(*json, state_);
  }
  void Daemon(const std::string& kind, const std::string& name, const std::string& command,
              int desired, int ready, const std::string& image = "nos:0.1.0") {
    const std::string d = std::to_string(desired), r = std::to_string(ready);
    Add(R"({"kind": ")" + kind + R"(", "metadata": {"namespace": "nos-system", "name": ")" + name +
        R"("}, "spec": {"replicas": )" + d + R"(, "template": {"spec": {"serviceAccountName": ")" +
        name + R"(", "containers": [{"name": "main", "image": ")" + image + R"(", "args": [")" +
        command + R"(", "--config", "/etc/nos/config.yaml", "--webhook"]}],
        "volumes": [{"name": "config", "configMap": {"name": ")" +
        name + R"("}}]}}},
        "status": {"readyReplicas": )" +
        r + R"(, "desiredNumberScheduled": )" + d + R"(, "numberReady": )" + r + "}}");
  }
  void Config(const std::string& name, const std::string& json) {
    state_.configs["nos-system/" + name] = *ParseJson(json);
  }
  void Node(const std::string& name, const std::string& labels,
            const std::string& runtime = "containerd://2.1.4") {
    Add(R"({"kind": "Node", "metadata": {"name": ")" + name + R"(", "labels": {)" + labels +
        R"(, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "8",
            "nvidia.com/cuda.driver-version.major": "580", "nvidia.com/mig.capable": "true"},
            "annotations": {"nos.nebuly.com/status-layout-0": "",
                            "nos.nebuly.com/spec-partitioning-plan": "7",
                            "nos.nebuly.com/status-partitioning-plan": "7"}},
            "status": {"nodeInfo": {"containerRuntimeVersion": ")" +
        runtime + R"(", "kubeletVersion": "v1.34.2"},
                       "conditions": [{"type": "Ready", "status": "True"}]}})");
  }
  void Handover(const std::string& node, const std::string& status, const std::string& reason) {
    for (NodeFacts& one : state_.nodes.items) {
      if (one.name != node) continue;
      one.conditions["nos.nebuly.com/DeviceHandover"] = status;
      one.reasons["nos.nebuly.com/DeviceHandover"] = reason;
    }
  }
  NodeFacts& FirstNode() { return state_.nodes.items.at(0); }
  void AgentPod(const std::string& node, bool ready) { Pod("nos-mig-agent", node, ready); }
  void Pod(const std::string& daemon_set, const std::string& node, bool ready) {
    Add(R"({"kind": "Pod", "metadata": {"namespace": "nos-system", "name": "p-)" + node +
        R"(", "ownerReferences": [{"kind": "DaemonSet", "name": ")" + daemon_set +
        R"("}]}, "spec": {"nodeName": ")" + node +
        R"("}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ")" +
        (ready ? "True" : "False") + R"("}]}})");
  }
  // A DaemonSet as those of the GPU Operator, whose container mounts the folder of the node.
  void Plugin(const std::string& name, const std::string& image, const std::string& strategy,
              const std::string& folder = "/var/lib/kubelet/device-plugins") {
    Add(R"({"kind": "DaemonSet", "metadata": {"namespace": "nos-system", "name": ")" + name +
        R"("}, "spec": {"template": {"spec": {
          "containers": [{"name": "c", "image": ")" +
        image + R"(", "env": [{"name": "MIG_STRATEGY", "value": ")" + strategy +
        R"("}], "volumeMounts": [{"name": "folder", "mountPath": "/folder"}]},
                         {"name": "config-manager", "image": ")" +
        image + R"(", "volumeMounts": [{"name": "config", "mountPath": "/config"}]}],
          "volumes": [{"name": "folder", "hostPath": {"path": ")" +
        folder + R"("}}, {"name": "config", "emptyDir": {}}]}}}})");
  }
  // The verdict of the code: the worst one, as several findings may have it. nullopt: no finding.
  std::optional<Verdict> VerdictOf(std::string_view code) {
    std::optional<Verdict> worst;
    for (const Finding& finding : CheckCluster(state_)) {
      if (finding.code != code) continue;
      if (finding.verdict == Verdict::kFailed || !worst) worst = finding.verdict;
      if (finding.verdict == Verdict::kWarning && worst != Verdict::kFailed) {
        worst = finding.verdict;
      }
    }
    return worst;
  }
  std::vector<std::string> ObjectsOf(std::string_view code) {
    for (const Finding& finding : CheckCluster(state_)) {
      if (finding.code == code && !finding.objects.empty()) return finding.objects;
    }
    return {};
  }

  Snapshot state_;
};

TEST_F(ClusterCheck, NothingFailsOnAGoodCluster) {
  for (const Finding& finding : CheckCluster(state_)) {
    EXPECT_NE(finding.verdict, Verdict::kFailed) << finding.code << ": " << finding.message;
    EXPECT_NE(finding.verdict, Verdict::kWarning) << finding.code << ": " << finding.message;
  }
  EXPECT_EQ(VerdictOf("AgentOnNode"), Verdict::kOk);
  EXPECT_EQ(VerdictOf("WebhookEndpoints"), Verdict::kOk);
  EXPECT_EQ(VerdictOf("LeaderElected"), Verdict::kOk);
  EXPECT_EQ(VerdictOf("DaemonAccess"), Verdict::kOk);
}

TEST_F(ClusterCheck, EveryFailureAndWarningNamesARemedy) {
  Snapshot empty;
  for (const Snapshot* one : {&empty, &state_}) {
    for (const Finding& finding : CheckCluster(*one)) {
      const bool bad = finding.verdict == Verdict::kFailed || finding.verdict == Verdict::kWarning;
      EXPECT_TRUE(!bad || !finding.remedy.empty()) << finding.code;
      EXPECT_FALSE(finding.topic.empty());
    }
  }
}

TEST_F(ClusterCheck, ServerVersions) {
  state_.server_version = std::string("v1.27.16");
  EXPECT_EQ(VerdictOf("ApiServerVersion"), Verdict::kFailed);
  state_.server_version = std::string("v1.28.0-gke.100");
  EXPECT_EQ(VerdictOf("ApiServerVersion"), Verdict::kOk);
  state_.server_version = std::string("v1.31+");
  EXPECT_EQ(VerdictOf("ApiServerVersion"), Verdict::kOk);
  state_.server_version = std::string("unknown");
  EXPECT_EQ(VerdictOf("ApiServerVersion"), Verdict::kWarning);
  state_.server_version = Status(Code::kPermission, "forbidden");
  EXPECT_EQ(VerdictOf("ApiServerVersion"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, MissingAndUnreadyDaemons) {
  state_.daemon_sets.items.clear();
  EXPECT_EQ(VerdictOf("AgentReady"), Verdict::kFailed);
  state_.deployments.items.at(0).ready = 1;
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kWarning);
  state_.deployments.items.at(0).ready = 0;
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kFailed);
  state_.deployments.items.at(0).desired = 0;
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kFailed);
  EXPECT_EQ(VerdictOf("AutoscalerReady"), Verdict::kNotChecked);
  state_.nos_namespace = "elsewhere";
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kFailed);
}

TEST_F(ClusterCheck, InstallationThatPartitionsNoGpu) {
  state_.daemon_sets.items.clear();
  std::erase_if(state_.deployments.items,
                [](const auto& one) { return one.name == "nos-gpu-partitioner"; });
  EXPECT_EQ(VerdictOf("SchedulerReady"), Verdict::kOk);
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kNotChecked);
  EXPECT_EQ(VerdictOf("AgentReady"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, NothingIsWrongBeforeAnInstallation) {
  state_.daemon_sets.items.clear();
  state_.deployments.items.clear();
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kWarning);
  EXPECT_EQ(VerdictOf("AgentReady"), Verdict::kWarning);
  state_.nos_namespace = "nos-system";
  EXPECT_EQ(VerdictOf("PartitionerReady"), Verdict::kFailed) << "the user says where it is";
}

TEST_F(ClusterCheck, VersionsThatDiffer) {
  Daemon("Deployment", "nos-autoscaler", "autoscaler", 1, 1, "registry.test:5000/nos:0.0.9");
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kWarning);
  state_.deployments.items.pop_back();
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kOk);
  state_.own_version = "0.2.0";
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kWarning);
}

TEST_F(ClusterCheck, ImagesByDigestHaveNoVersion) {
  const auto run = [this](const std::string& image) {
    for (auto* kind : {&state_.deployments, &state_.daemon_sets}) {
      for (WorkloadFacts& one : kind->items) one.containers.at(0).image = image;
    }
  };
  run("registry.test:5000/nos@sha256:aa");
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kOk);
  run("registry.test:5000/nos:0.1.0@sha256:aa");
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kOk);
  run("registry.test:5000/nos:0.0.9@sha256:aa");
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kWarning);
  run("registry.test:5000/nos");
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kWarning);
  run("registry.test:5000/nos@sha256:aa");
  state_.daemon_sets.items.at(0).containers.at(0).image = "registry.test:5000/nos@sha256:bb";
  EXPECT_EQ(VerdictOf("VersionsAlike"), Verdict::kWarning);
}

TEST_F(ClusterCheck, LeasesThatAreMissingOrExpired) {
  state_.leases.items.at(0).renewed = state_.now - std::chrono::minutes(5);
  EXPECT_EQ(VerdictOf("LeaderElected"), Verdict::kFailed);
  EXPECT_EQ(ObjectsOf("LeaderElected").size(), 1u);
  state_.leases.items.clear();
  EXPECT_EQ(ObjectsOf("LeaderElected").size(), 3u);
  for (const char* name : {"nos-gpu-partitioner", "nos-scheduler", "nos-operator"}) {
    Config(name, R"({"leaderElection": {"leaderElect": false}})");
  }
  EXPECT_EQ(VerdictOf("LeaderElected"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, TwoInstallations) {
  WorkloadFacts second = state_.deployments.items.at(0);
  second.ns = "nos-two";
  state_.deployments.items.push_back(second);
  EXPECT_EQ(VerdictOf("OneInstallation"), Verdict::kFailed);
}

TEST_F(ClusterCheck, DefinitionsAreNeededByTheirDaemon) {
  state_.definitions.items.clear();
  EXPECT_EQ(VerdictOf("ElasticQuotaDefinition"), Verdict::kFailed);
  EXPECT_EQ(VerdictOf("NodePoolDefinition"), Verdict::kNotChecked);
  Add(R"({"kind": "CustomResourceDefinition", "metadata": {"name": "elasticquotas.nos.nebuly.com"},
          "spec": {"versions": [{"name": "v1alpha1", "served": false}]}})");
  EXPECT_EQ(VerdictOf("ElasticQuotaDefinition"), Verdict::kFailed);
  state_.definitions.status = Status(Code::kPermission, "forbidden");
  EXPECT_EQ(VerdictOf("ElasticQuotaDefinition"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, WebhooksWithoutCertificateOrEndpoint) {
  state_.webhooks.items.at(0).has_ca = false;
  EXPECT_EQ(VerdictOf("WebhookCertificate"), Verdict::kFailed);
  state_.endpoints.items.at(0).ready = 0;
  EXPECT_EQ(VerdictOf("WebhookEndpoints"), Verdict::kFailed);
  state_.webhooks.items.clear();
  EXPECT_EQ(VerdictOf("WebhookConfiguration"), Verdict::kFailed);
}

TEST_F(ClusterCheck, MissingRights) {
  for (AccessFacts& one : state_.access) {
    if (one.resource == "nodes" && one.subresource == "status") one.allowed = false;
  }
  EXPECT_EQ(VerdictOf("DaemonAccess"), Verdict::kFailed);
  EXPECT_EQ(ObjectsOf("DaemonAccess").at(0),
            "system:serviceaccount:nos-system:nos-mig-agent: patch nodes/status");
  EXPECT_EQ(VerdictOf("CommandAccess"), Verdict::kOk);
  for (AccessFacts& one : state_.access) {
    if (!one.who.empty()) one.asked = Status(Code::kPermission, "forbidden");
    if (one.who.empty() && one.resource == "pods") one.allowed = false;
  }
  EXPECT_EQ(VerdictOf("DaemonAccess"), Verdict::kNotChecked);
  EXPECT_EQ(VerdictOf("CommandAccess"), Verdict::kWarning);
}

TEST_F(ClusterCheck, LabelsOfNodes) {
  Node("typo", R"("nos.nebuly.com/gpu-partitioning": "mgi")");
  EXPECT_EQ(ObjectsOf("PartitioningLabel"), std::vector<std::string>{"typo=mgi"});
  Node("old", R"("n8s.nebuly.ai/auto-mig-enabled": "true")");
  EXPECT_EQ(ObjectsOf("OldLabel"), std::vector<std::string>{"old"});
  EXPECT_EQ(ObjectsOf("AgentOnNode"), std::vector<std::string>{"old"});
  state_.nodes.items.clear();
  EXPECT_EQ(VerdictOf("NodesLabelled"), Verdict::kWarning);
}

TEST_F(ClusterCheck, NodesWhoseAgentIsMissingUnreadyOrSilent) {
  state_.pods.items.at(0).ready = false;
  EXPECT_EQ(VerdictOf("AgentOnNodeReady"), Verdict::kFailed);
  state_.pods.items.clear();
  EXPECT_EQ(VerdictOf("AgentOnNode"), Verdict::kFailed);
  FirstNode().annotations["nos.nebuly.com/status-partitioning-plan"] = "6";
  EXPECT_EQ(VerdictOf("PlanAcknowledged"), Verdict::kWarning);
  FirstNode().annotations.clear();
  EXPECT_EQ(VerdictOf("AgentReports"), Verdict::kFailed);
  FirstNode().conditions["nos.nebuly.com/GpusHealthy"] = "False";
  EXPECT_EQ(VerdictOf("GpusHealthy"), Verdict::kFailed);
  FirstNode().conditions["nos.nebuly.com/RebootRequired"] = "True";
  EXPECT_EQ(VerdictOf("RebootRequired"), Verdict::kWarning);
  FirstNode().conditions["Ready"] = "Unknown";
  EXPECT_EQ(VerdictOf("NodeReady"), Verdict::kFailed);
}

TEST_F(ClusterCheck, HandoverOfDevices) {
  EXPECT_EQ(VerdictOf("DeviceHandover"), Verdict::kNotChecked);
  Handover("gpu-1", "True", "ContainerDeviceInterface");
  EXPECT_EQ(VerdictOf("DeviceHandover"), Verdict::kOk);
  Handover("gpu-1", "True", "EnvironmentVariable");
  EXPECT_EQ(VerdictOf("DeviceHandover"), Verdict::kWarning);
  for (const char* reason : {"DriverFilesNotFound", "DriverNotLoaded", "SpecificationNotWritten",
                             "DeviceNodesNotFound", "Other"}) {
    Handover("gpu-1", "False", reason);
    EXPECT_EQ(VerdictOf("DeviceHandover"), Verdict::kFailed);
    EXPECT_EQ(ObjectsOf("DeviceHandover"), std::vector<std::string>{"gpu-1"});
    const auto findings = CheckCluster(state_);
    const auto finding = std::ranges::find(findings, "DeviceHandover", &Finding::code);
    EXPECT_NE(finding->message.find(reason), std::string::npos) << finding->message;
  }
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "nvidia"}})");
  EXPECT_EQ(VerdictOf("DeviceHandover"), Verdict::kNotChecked) << "it is of an earlier agent";
}

TEST_F(ClusterCheck, LabelsOfGpus) {
  FirstNode().labels["nvidia.com/gpu.product"] = "NVIDIA-Z9000";
  EXPECT_EQ(VerdictOf("GpuProduct"), Verdict::kWarning);
  FirstNode().labels["nvidia.com/mig.capable"] = "false";
  EXPECT_EQ(VerdictOf("MigCapable"), Verdict::kFailed);
  FirstNode().labels["nvidia.com/mig.strategy"] = "single";
  EXPECT_EQ(VerdictOf("MigStrategy"), Verdict::kFailed);
  FirstNode().labels["nvidia.com/cuda.driver-version.major"] = "470";
  EXPECT_EQ(VerdictOf("DriverVersion"), Verdict::kFailed);
  FirstNode().labels.erase("nvidia.com/cuda.driver-version.major");
  EXPECT_EQ(VerdictOf("DriverVersion"), Verdict::kNotChecked);
  FirstNode().labels.erase("nvidia.com/gpu.product");
  EXPECT_EQ(VerdictOf("GpuLabels"), Verdict::kWarning);
}

TEST_F(ClusterCheck, ContainerRuntimes) {
  const struct {
    const char* runtime;
    const char* handover;
    Verdict verdict;
  } kCases[] = {{"containerd://2.0.0-k3s1", "auto", Verdict::kOk},
                {"cri-o://1.34.1", "cdi", Verdict::kOk},
                {"containerd://1.7.27", "auto", Verdict::kWarning},
                {"containerd://1.7.27", "cdi", Verdict::kWarning},
                {"containerd://1.6.30", "auto", Verdict::kWarning},
                {"containerd://1.6.30", "cdi", Verdict::kFailed},
                {"docker://24.0.7", "auto", Verdict::kWarning},
                {"", "auto", Verdict::kWarning}};
  for (const auto& one : kCases) {
    FirstNode().runtime = one.runtime;
    Config("nos-mig-agent",
           R"({"devicePlugin": {"handover": ")" + std::string(one.handover) + R"("}})");
    EXPECT_EQ(VerdictOf("ContainerRuntime"), one.verdict) << one.runtime << one.handover;
  }
}

TEST_F(ClusterCheck, KubeletsThatIgnoreCdi) {
  EXPECT_EQ(VerdictOf("ContainerRuntime"), Verdict::kOk);
  FirstNode().kubelet = "v1.28.15";
  EXPECT_EQ(VerdictOf("ContainerRuntime"), Verdict::kWarning);
  Config("nos-mig-agent", R"({"devicePlugin": {"handover": "cdi"}})");
  EXPECT_EQ(VerdictOf("ContainerRuntime"), Verdict::kFailed);
}

TEST_F(ClusterCheck, RuntimeClassOfTheAgent) {
  for (WorkloadFacts& one : state_.daemon_sets.items) one.runtime_class = "nvidia";
  EXPECT_EQ(VerdictOf("RuntimeClass"), Verdict::kFailed);
  Add(R"({"kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"})");
  EXPECT_EQ(VerdictOf("RuntimeClass"), Verdict::kOk);
}

TEST_F(ClusterCheck, ProgramsOfTheDriver) {
  EXPECT_EQ(VerdictOf("DriverPrograms"), std::nullopt);
  Config("nos-mig-agent", R"({"mps": {"enabled": true, "plugin": "nebuly"}})");
  EXPECT_EQ(VerdictOf("DriverPrograms"), std::nullopt);
  for (const char* config : {R"({"mps": {"enabled": true}})", R"({"hybrid": {"reset": "gpu"}})"}) {
    Config("nos-mig-agent", config);
    EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kWarning) << config;
  }
  Plugin("nvidia-container-toolkit-daemonset", "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0", "");
  EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kWarning);
  auto& environment = state_.daemon_sets.items.back().containers.at(0).environment;
  environment["NVIDIA_RUNTIME_SET_AS_DEFAULT"] = "false";
  EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kFailed);
  EXPECT_EQ(ObjectsOf("DriverPrograms"),
            std::vector<std::string>{"nos-system/nvidia-container-toolkit-daemonset"});
  environment["CONTAINERD_SET_AS_DEFAULT"] = "true";
  EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kWarning);
  FirstNode().reasons["nos.nebuly.com/GpusHealthy"] = "MpsNotServed";
  EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kFailed);
  EXPECT_EQ(ObjectsOf("DriverPrograms"), std::vector<std::string>{"gpu-1"});
  for (WorkloadFacts& one : state_.daemon_sets.items) one.runtime_class = "nvidia";
  EXPECT_EQ(VerdictOf("DriverPrograms"), Verdict::kOk);
}

TEST_F(ClusterCheck, VariableThatReachesEveryGpu) {
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kNotChecked);
  Plugin("nvidia-container-toolkit-daemonset", "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0", "");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kWarning);
  Handover("gpu-1", "True", "ContainerDeviceInterface");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kFailed);
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "nvidia"}})");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kWarning);
  Handover("gpu-1", "True", "EnvironmentVariable");
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "builtin", "handover": "devices"}})");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kFailed);
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "builtin", "handover": "environment"}})");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kWarning);
  std::string& accepts = state_.daemon_sets.items.back()
                             .containers.at(0)
                             .environment["ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"];
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kWarning) << "its value is not known";
  accepts = "False";
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kFailed) << "nos uses the variable";
  Handover("gpu-1", "True", "DeviceNodes");
  EXPECT_EQ(VerdictOf("VisibleDevicesVariable"), Verdict::kOk);
}

TEST_F(ClusterCheck, DevicePluginsThatOfferTheSame) {
  Plugin("nvidia-device-plugin-daemonset", "nvcr.io/nvidia/k8s-device-plugin:v0.18.0", "mixed");
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kOk) << "it has no pod on a labelled node";
  Pod("nvidia-device-plugin-daemonset", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kFailed);
  state_.daemon_sets.items.back().containers.at(0).environment["MIG_STRATEGY"] = "none";
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kWarning);
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "nvidia"}})");
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kOk);
  EXPECT_EQ(VerdictOf("DevicePluginStrategy"), Verdict::kFailed);
  state_.pods.items.pop_back();
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kFailed);
}

TEST_F(ClusterCheck, OtherProgramsInThePluginsImageAreNoPlugins) {
  const std::string image = "nvcr.io/nvidia/k8s-device-plugin:v0.18.0";
  const std::string features = "/etc/kubernetes/node-feature-discovery/features.d";
  Plugin("gpu-feature-discovery", image, "mixed", features);
  Pod("gpu-feature-discovery", "gpu-1", true);
  Plugin("nvidia-device-plugin-mps-control-daemon", image, "", "/run/nvidia/mps");
  Pod("nvidia-device-plugin-mps-control-daemon", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kOk);
  Config("nos-mig-agent", R"({"devicePlugin": {"mode": "nvidia"}})");
  EXPECT_EQ(ObjectsOf("DevicePlugin"), std::vector<std::string>{"gpu-1"});
  Plugin("nvidia-device-plugin-daemonset", image, "mixed", "/var/lib/k0s/kubelet/device-plugins/");
  Pod("nvidia-device-plugin-daemonset", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kOk);
}

TEST_F(ClusterCheck, PluginsOfGkeAndNebuly) {
  Plugin("nvidia-gpu-device-plugin-large-cos", "gcr.io/gke-release/nvidia-gpu-device-plugin:1", "");
  Pod("nvidia-gpu-device-plugin-large-cos", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kFailed);
  Plugin("nvidia-device-plugin", "ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0", "");
  Pod("nvidia-device-plugin", "gpu-1", true);
  EXPECT_EQ(VerdictOf("NebulyPlugin"), Verdict::kWarning);
  Node("gpu-2", R"("nos.nebuly.com/gpu-partitioning": "mps")");
  Config("nos-mig-agent", R"({"mps": {"plugin": "nebuly"}})");
  EXPECT_EQ(ObjectsOf("NebulyPlugin"), std::vector<std::string>{"gpu-2"});
}

TEST_F(ClusterCheck, OtherProgramsThatShareGpus) {
  Plugin("hami-device-plugin", "projecthami/hami:v2.8.0", "");
  Pod("hami-device-plugin", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kFailed);
  state_.daemon_sets.items.pop_back();
  state_.pods.items.pop_back();
  Plugin("nvidia-dra-driver-gpu-kubelet-plugin", "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.0", "",
         "/var/lib/kubelet/plugins_registry");
  Pod("nvidia-dra-driver-gpu-kubelet-plugin", "gpu-1", true);
  EXPECT_EQ(VerdictOf("DevicePlugin"), Verdict::kWarning);
}

TEST_F(ClusterCheck, MonitorsOfGpusWhoseMigModeMayChange) {
  const auto report = [this](int gpu, const std::string& layout) {
    FirstNode().annotations[fmt::format("nos.nebuly.com/status-layout-{}", gpu)] = layout;
  };
  Plugin("nvidia-dcgm-exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.1-4.6.0-ubuntu22.04", "",
         "/var/lib/kubelet/pod-resources");
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kOk) << "it has no pod on a labelled node";
  Pod("nvidia-dcgm-exporter", "gpu-1", true);
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kWarning) << "the MIG modes are not known";
  EXPECT_EQ(ObjectsOf("GpuMonitor"), std::vector<std::string>{"gpu-1"});
  for (int gpu = 0; gpu < 8; ++gpu) report(gpu, "1g.5gb@0:free");
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kOk);
  report(7, "");
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kWarning);
  FirstNode().labels["nos.nebuly.com/gpu-partitioning"] = "mps";
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kOk) << "nos does not change MIG modes there";
}

TEST_F(ClusterCheck, WholeGpusHaveMigModeOff) {
  Plugin("dcgm-exporter", "gke.gcr.io/monitor:1", "", "/var/lib/kubelet/pod-resources");
  Pod("dcgm-exporter", "gpu-1", true);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::string number = std::to_string(gpu);
    FirstNode().annotations["nos.nebuly.com/status-model-" + number] = "A100-40GB+GPU";
    FirstNode().annotations["nos.nebuly.com/status-other-model-" + number] = "";
    FirstNode().annotations["nos.nebuly.com/status-layout-" + number] = "1g.5gb@0:free";
  }
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kOk);
  FirstNode().annotations["nos.nebuly.com/status-layout-7"] = "gpu@0:used";
  EXPECT_EQ(VerdictOf("GpuMonitor"), Verdict::kWarning);
}

TEST_F(ClusterCheck, GpuOperator) {
  EXPECT_EQ(VerdictOf("GpuOperator"), Verdict::kNotChecked);
  state_.cluster_policies.status = Status::Ok();
  Add(R"({"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"},
          "spec": {"migManager": {"enabled": true}, "cdi": {"enabled": true}},
          "status": {"state": "notReady"}})");
  EXPECT_EQ(VerdictOf("GpuOperator"), Verdict::kWarning);
  EXPECT_EQ(VerdictOf("MigManager"), Verdict::kFailed);
  state_.cluster_policies.items.clear();
  Add(R"({"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": {},
          "status": {"state": "ready"}})");
  EXPECT_EQ(VerdictOf("MigManager"), Verdict::kFailed) << "on where the policy does not say";
  state_.cluster_policies.items.clear();
  Add(R"({"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"},
          "spec": {"migManager": {"enabled": false}}, "status": {"state": "ready"}})");
  EXPECT_EQ(VerdictOf("MigManager"), Verdict::kOk);
  FirstNode().labels["nvidia.com/mig.config"] = "all-1g.5gb";
  EXPECT_EQ(VerdictOf("MigConfigLabel"), Verdict::kWarning);
}

TEST_F(ClusterCheck, PodsThatWaitForAnAbsentScheduler) {
  Add(R"({"kind": "Pod", "metadata": {"namespace": "ml", "name": "train"},
          "spec": {"schedulerName": "nos-scheduler"}, "status": {"phase": "Pending"}})");
  EXPECT_EQ(VerdictOf("SchedulerOfPods"), Verdict::kOk);
  state_.deployments.items.erase(state_.deployments.items.begin() + 1);
  EXPECT_EQ(ObjectsOf("SchedulerOfPods"), std::vector<std::string>{"ml/train"});
}

TEST_F(ClusterCheck, QuotasThatDoNotCount) {
  Add(R"({"kind": "ElasticQuota", "metadata": {"namespace": "ml", "name": "a"},
          "status": {"conditions": [{"type": "InForce", "status": "False"}]}})");
  Add(R"({"kind": "ElasticQuota", "metadata": {"namespace": "ml", "name": "b"}})");
  EXPECT_EQ(ObjectsOf("Quotas"), std::vector<std::string>{"ml/a"});
  EXPECT_EQ(ObjectsOf("QuotaStatus"), std::vector<std::string>{"ml/b"});
  state_.quotas.status = NotFound("no such kind");
  EXPECT_EQ(VerdictOf("Quotas"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, RecordsOfTelemetry) {
  EXPECT_EQ(VerdictOf("TelemetryRecords"), std::nullopt);
  Config("nos-mig-agent", R"({"telemetry": {"cluster": "prod",
         "endpoint": "https://nos-operator-webhook.nos-system.svc"}})");
  EXPECT_EQ(VerdictOf("TelemetryRecords"), Verdict::kNotChecked);
  state_.telemetry_metrics = Status(Code::kPermission, "you may not");
  EXPECT_EQ(VerdictOf("TelemetryRecords"), Verdict::kNotChecked);
  const auto metrics = [](int reporting, int silent) {
    return fmt::format(
        "# TYPE nos_telemetry_nodes gauge\n"
        "nos_telemetry_nodes{{cluster=\"other\",state=\"reporting\"}} 7\n"
        "nos_telemetry_nodes{{cluster=\"prod\",state=\"reporting\"}} {}\n"
        "nos_telemetry_nodes{{cluster=\"prod\",state=\"silent\"}} {}\n",
        reporting, silent);
  };
  const struct {
    int reporting, silent;
    Verdict verdict;
    std::string message;
  } kCases[] = {{0, 0, Verdict::kFailed, "no record of an agent has arrived for cluster prod"},
                {0, 2, Verdict::kFailed, "no record of an agent arrives any more"},
                {2, 1, Verdict::kWarning, "records of 2 nodes arrive; 1 node stopped"},
                {3, 0, Verdict::kOk, "records of 3 nodes arrive"}};
  for (const auto& one : kCases) {
    state_.telemetry_metrics = metrics(one.reporting, one.silent);
    const auto all = CheckCluster(state_);
    const auto found = std::ranges::find(all, "TelemetryRecords", &Finding::code);
    ASSERT_NE(found, all.end());
    EXPECT_EQ(found->verdict, one.verdict) << one.message;
    EXPECT_EQ(found->message, one.message);
  }
}

TEST_F(ClusterCheck, TelemetryServers) {
  EXPECT_EQ(VerdictOf("TelemetryReporter"), Verdict::kNotChecked);
  Config("nos-mig-agent",
         R"({"telemetry": {"endpoint": "https://nos-telemetry.nos-system.svc:443"}})");
  EXPECT_EQ(VerdictOf("TelemetryServer"), Verdict::kFailed);
  Add(R"({"kind": "EndpointSlice", "metadata": {"namespace": "nos-system", "labels": {
          "kubernetes.io/service-name": "nos-telemetry"}}, "endpoints": [{}]})");
  EXPECT_EQ(VerdictOf("TelemetryServer"), Verdict::kOk);
  Config("nos-mig-agent", R"({"telemetry": {"endpoint": "https://telemetry.example.com"}})");
  EXPECT_EQ(VerdictOf("TelemetryServer"), Verdict::kNotChecked);
}

TEST_F(ClusterCheck, WithoutRightsNothingFails) {
  Snapshot blind;
  const Status forbidden(Code::kPermission, "forbidden");
  blind.server_version = forbidden;
  blind.definitions.status = blind.deployments.status = blind.daemon_sets.status =
      blind.stateful_sets.status = blind.nodes.status = blind.pods.status = forbidden;
  blind.webhooks.status = blind.endpoints.status = blind.leases.status = forbidden;
  blind.runtime_classes.status = blind.cluster_policies.status = blind.quotas.status = forbidden;
  for (const Finding& finding : CheckCluster(blind)) {
    EXPECT_NE(finding.verdict, Verdict::kFailed) << finding.code;
  }
}

TEST_F(ClusterCheck, ObjectsOfAnyShapeAreAccepted) {
  for (const char* kind : {"Node", "Pod", "Deployment", "DaemonSet", "CustomResourceDefinition",
                           "Lease", "ValidatingWebhookConfiguration", "EndpointSlice",
                           "RuntimeClass", "ClusterPolicy", "ElasticQuota"}) {
    for (const char* part :
         {R"("metadata": 1, "spec": [], "status": "x", "webhooks": {}, "endpoints": 3)",
          R"("metadata": {"labels": [1], "name": {}}, "spec": {"template": 7, "versions": [1]},
             "status": {"conditions": [null, 1]}, "webhooks": [1], "endpoints": [[]])"}) {
      Add(R"({"kind": ")" + std::string(kind) + R"(", )" + part + "}");
    }
  }
  EXPECT_FALSE(CheckCluster(state_).empty());
}

TEST_F(ClusterCheck, ALargeClusterGivesOneFindingOfAKind) {
  const size_t before = CheckCluster(state_).size();
  for (int i = 0; i < 5000; ++i) {
    Node("node-" + std::to_string(i), R"("nos.nebuly.com/gpu-partitioning": "mig")");
  }
  const auto findings = CheckCluster(state_);
  EXPECT_EQ(findings.size(), before);
  EXPECT_EQ(ObjectsOf("AgentOnNode").size(), 5000u);
}

}  // namespace
}  // namespace nos::cmd
