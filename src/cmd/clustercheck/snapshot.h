// The parts of a cluster that the checks look at, as plain values. The checks are functions of a
// Snapshot, so that tests build one from objects.
//
//   Snapshot snapshot;
//   Take(object, snapshot);              // each object, with its kind
//   const auto findings = CheckCluster(snapshot);
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "codec/json.h"
#include "gpu/catalogue.h"

namespace nos::cmd {

using Labels = std::map<std::string, std::string, std::less<>>;

// The items of one kind. `status` is kNotFound if the API server does not serve the kind.
template <typename T>
struct Read {
  Status status{};
  std::vector<T> items{};
  bool served() const { return status.code() != Code::kNotFound; }
};

struct NodeFacts {
  std::string name;
  Labels labels;
  Labels annotations;               // of nos only
  Labels conditions, reasons;       // type -> status, type -> reason; of nos and Ready
  std::set<std::string> resources;  // GPU resources in allocatable, with an amount above zero
  std::string runtime;              // "containerd://2.1.4"
  std::string kubelet;              // "v1.34.2"

  // "" if there is none.
  std::string Label(std::string_view key) const;
  bool HasGpu() const;
  // The mode that its owner chose with a label of any spelling: "mig", "mps", "hybrid"; "": none.
  std::string Mode() const;
  bool Labelled() const { return !Mode().empty(); }
  // The condition's status and reason; "" if the node does not have the condition.
  std::string Condition(std::string_view type) const;
  std::string Reason(std::string_view type) const;
};

struct PodFacts {
  std::string ns, name, node, scheduler, phase;
  std::string owner;  // "DaemonSet/name"
  bool ready = false;
  bool asks_for_gpu = false;
  // The summary of a pending pod that asks for GPUs, as in all commands (scheduling/summary.h).
  struct Pending {
    Time created{};
    std::string headline, help;  // help: the best action; "": none is known
  };
  std::optional<Pending> pending{};
  std::string Key() const { return ns + "/" + name; }
};

struct ContainerFacts {
  std::string name, image;
  std::vector<std::string> arguments;
  Labels environment;
  std::set<std::string> host_folders;  // of the node, that it mounts: "/var/lib/kubelet"
};

// A Deployment, DaemonSet or StatefulSet.
struct WorkloadFacts {
  std::string kind, ns, name;
  Labels labels;
  int64_t desired = 0, ready = 0;
  std::vector<ContainerFacts> containers;
  std::string service_account, runtime_class;
  std::set<std::string> config_maps;  // names of its volumes' ConfigMaps

  std::string Key() const { return ns + "/" + name; }
  // "agent", "partitioner"... if it runs nos, else "".
  std::string_view NosCommand() const;
  // The value in any container, nullopt if it is not set there.
  std::optional<std::string> Environment(std::string_view name) const;
  bool HasImage(std::string_view part) const;
};

struct WebhookFacts {
  std::string configuration, name, service_ns, service, failure_policy;
  bool has_ca = false;
};

struct EndpointFacts {
  std::string ns, service;
  size_t ready = 0;
};

struct LeaseFacts {
  std::string ns, name, holder;
  std::optional<Time> renewed;
  int64_t seconds = 0;
};

// One question to the API server about a right, and its answer.
struct AccessFacts {
  std::string who;  // "" for the user of this command, else "system:serviceaccount:NS:NAME"
  std::string group, resource, subresource, verb, ns, name;
  Status asked{};
  bool allowed = false;
  std::string Text() const;  // "patch nodes/status"
};

struct Snapshot {
  Time now{};
  std::string own_version;    // of this command
  std::string nos_namespace;  // the flag; "": every namespace
  const gpu::Catalogue* catalogue = &gpu::Catalogue::Builtin();
  Result<std::string> server_version = NotFound("not read");
  Read<Json> definitions;  // CustomResourceDefinitions of nos, without schemas
  Read<WorkloadFacts> deployments, daemon_sets, stateful_sets;
  Read<NodeFacts> nodes;
  Read<PodFacts> pods;
  Read<WebhookFacts> webhooks;
  Read<EndpointFacts> endpoints;
  Read<LeaseFacts> leases;
  Read<std::string> runtime_classes;  // "name=handler"
  Read<Json> cluster_policies;
  Read<Json> quotas;                    // both kinds
  std::map<std::string, Json> configs;  // "namespace/name" -> the configuration in a ConfigMap
  // Metrics of the telemetry server of this cluster, in Prometheus' text format.
  Result<std::string> telemetry_metrics = NotFound("no telemetry server is installed");
  std::vector<AccessFacts> access;

  // Workloads that run this command of nos, in the namespace of the flag.
  std::vector<const WorkloadFacts*> Running(std::string_view command) const;
  std::vector<const WorkloadFacts*> AllOfNos() const;
  // The string at a path of the agent's configuration; "" if it is not known.
  std::string AgentConfig(std::string_view group, std::string_view field) const;
  // The configuration of the workload; null if it could not be read.
  const Json* ConfigOf(const WorkloadFacts& workload) const;
};

// Readers of single objects. They accept any JSON.
NodeFacts ReadNodeFacts(const Json& node);
PodFacts ReadPodFacts(const Json& pod);
WorkloadFacts ReadWorkloadFacts(const Json& workload, std::string_view kind);
std::vector<WebhookFacts> ReadWebhookFacts(const Json& configuration);
EndpointFacts ReadEndpointFacts(const Json& slice);
LeaseFacts ReadLeaseFacts(const Json& lease);
// Adds an object with a `kind`; objects of other kinds are ignored.
void Take(const Json& object, Snapshot& to);

}  // namespace nos::cmd
