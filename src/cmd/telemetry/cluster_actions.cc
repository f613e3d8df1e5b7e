#include "cmd/telemetry/cluster_actions.h"

#include <fmt/format.h>

#include <utility>

#include "cmd/daemon/scheduler_file.h"
#include "cmd/telemetry/explainer.h"
#include "codec/json_text.h"
#include "kube/client.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using telemetryserver::ActionCall;
using telemetryserver::Reader;

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr std::string_view kNobodys = "-";  // not a valid namespace name

scheduling::ConfigurationUse NosScheduler(const ActionsConfig& config) {
  return {.default_name = kOurScheduler, .partitioned_by = config.partitioned_by};
}

Result<Json> CreatePod(kube::Transport& transport, const WrittenPod& pod, bool dry_run) {
  kube::ApiRequest request;
  request.method = "POST";
  request.path = kube::PathOf(kube::kPods, pod.ns);
  request.content_type = "application/json";
  request.body = pod.object;
  if (dry_run) request.query.emplace_back("dryRun", "All");
  return kube::Client(transport).Within(kPatience).Send(request);
}

// Replaces pods with the same name.
void AddPod(ClusterObjects& objects, const SharedPod& pod) {
  std::erase_if(objects.pods, [&](const SharedPod& other) { return other->Key() == pod->Key(); });
  objects.pods.push_back(pod);
}

}  // namespace

void DescribeActions(ConfigFields& f, ActionsConfig& c) {
  f.Flag(
      "whatIf", c.what_if,
      "Readers may ask where a pod would be placed, in namespaces in which they may create pods. "
      "The server then watches nodes, pods and related objects.");
  f.Flag("submit", c.submit, "Readers may create pods with their own rights.");
  f.Flag(
      "impersonate", c.impersonate,
      "Impersonate users signed in by readers.oidc when creating pods; the server needs the right "
      "to impersonate. Users with a cluster token act with their own token.");
  f.Text(
      "cluster", c.cluster,
      "Name that reporters use for the cluster of these actions, in which readers also have their "
      "namespaces. May be empty while only one cluster reports.");
  f.Text("schedulerConfig", c.scheduler_config,
         "Configuration file of nos scheduler. Empty: its defaults.");
}

ClusterActions::ClusterActions(ActionsConfig config, Parts parts)
    : config_(std::move(config)), parts_(std::move(parts)) {
  if (config_.what_if) watch_ = std::make_unique<ClusterWatch>(parts_.transport);
}

Result<std::unique_ptr<ClusterActions>> ClusterActions::Make(ActionsConfig config, Parts parts) {
  NOS_RETURN_IF_ERROR(ReadSchedulerFile(config.scheduler_config, NosScheduler(config))
                          .status()
                          .Within("actions.schedulerConfig"));
  return std::unique_ptr<ClusterActions>(new ClusterActions(std::move(config), std::move(parts)));
}

bool ClusterActions::ActsAs(const Reader& reader) const {
  return reader.has_cluster_token || config_.impersonate;
}

telemetryserver::Actions::Can ClusterActions::Of(const Reader& reader) const {
  return {.what_if = config_.what_if && reader.may_create,
          .submit = config_.submit && reader.may_create && ActsAs(reader)};
}

Result<WrittenPod> ClusterActions::Read(bool on, std::string_view setting, ActionCall& call) const {
  if (!on) {
    return Status(Code::kUnimplemented,
                  fmt::format("this is not set up here: see actions.{} in the configuration of nos "
                              "telemetry",
                              setting));
  }
  if (config_.cluster.empty() && !call.only_cluster) {
    return Status(
        Code::kUnimplemented,
        "several clusters report here, and this server does not know which of them it has "
        "access to: set actions.cluster in the configuration of nos telemetry");
  }
  if (!config_.cluster.empty() && config_.cluster != call.cluster) {
    return Status(Code::kUnimplemented,
                  fmt::format("this server has access to cluster {} alone, not to {}",
                              config_.cluster, call.cluster));
  }
  // Only then is the text read: parsing costs more than this answer.
  if (!call.reader.may_create) {
    return Status(Code::kPermission,
                  fmt::format("{} may not create pods in any namespace", call.reader.user));
  }
  NOS_ASSIGN(WrittenPod pod, ReadWrittenPod(call.pod));
  call.subject = pod.Key();
  NOS_ASSIGN(const bool may, parts_.may_create(call.reader, pod.ns));
  if (may) return pod;
  return Status(Code::kPermission,
                fmt::format("{} may not create pods in namespace {}", call.reader.user, pod.ns));
}

Result<std::string> ClusterActions::WhatIf(ActionCall& call) {
  NOS_ASSIGN(const WrittenPod written, Read(config_.what_if, "whatIf", call));
  NOS_ASSIGN(ClusterObjects objects, watch_->Objects());
  std::string note;
  NOS_ASSIGN(Json admitted, Admitted(call, written, note));
  MakeObject(admitted, "metadata")["name"] = written.NameOrSo();
  NOS_ASSIGN(cluster::Pod decoded, cluster::DecodePod(admitted));
  const auto pod = std::make_shared<const cluster::Pod>(std::move(decoded));
  if (!scheduling::IsPending(*pod)) {
    return Invalid("spec.nodeName: the pod names its node itself, and no scheduler places it");
  }
  AddPod(objects, pod);
  NOS_ASSIGN(SchedulerFile file,
             ReadSchedulerFile(config_.scheduler_config, NosScheduler(config_)));
  // A scheduler that the file does not have counts as kube-scheduler with its defaults.
  const Deciders deciders(std::move(file.configuration), pod->scheduler_name, false);
  const Reader& reader = call.reader;
  if (reader.may_all) {
    return WhatIfJson(ExplainWaiting(objects, pod, deciders, parts_.catalogue), note);
  }
  const std::string own = reader.May(written.ns) ? written.ns : std::string(kNobodys);
  auto why = ExplainWaiting(objects, pod, deciders, parts_.catalogue, own);
  why = ForReader(std::move(why), own, [&](std::string_view ns) { return reader.May(ns); });
  return WhatIfJson(why, note);
}

Result<Json> ClusterActions::Admitted(const ActionCall& call, const WrittenPod& pod,
                                      std::string& note) const {
  const auto transport = parts_.as_reader(call);
  if (!transport.ok() && transport.status().code() == Code::kUnimplemented) {
    note = "the pod is simulated without the API server's defaults and admission: " +
           transport.status().message();
    return pod.object;
  }
  NOS_RETURN_IF_ERROR(transport.status());
  auto made = CreatePod(**transport, pod, true);
  if (made.ok() || made.status().code() != Code::kAlreadyExists) return made;
  note = fmt::format("pod {} exists; the answer is for a new pod of this name", pod.Key());
  WrittenPod other = pod;
  JsonObject& metadata = MakeObject(other.object, "metadata");
  metadata.erase("name");
  metadata["generateName"] = pod.name.substr(0, 200) + "-";
  return CreatePod(**transport, other, true);
}

Result<std::string> ClusterActions::Submit(ActionCall& call) {
  NOS_ASSIGN(const WrittenPod written, Read(config_.submit, "submit", call));
  NOS_ASSIGN(const auto transport, parts_.as_reader(call));
  NOS_ASSIGN(const Json made, CreatePod(*transport, written, false));
  const std::string name(FindString(made, "metadata", "name"));
  call.subject = written.ns + "/" + name;
  JsonText json;
  json.Begin('{').Key("namespace").Text(written.ns).Key("name").Text(name).End('}');
  return std::move(json.text());
}

}  // namespace nos::cmd
