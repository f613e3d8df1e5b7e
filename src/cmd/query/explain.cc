// nos explain: why one pod is pending, from a live cluster or a dump. Changes no object.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/table.h"
#include "base/text.h"
#include "cmd/catalogue_flag.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/scheduler_file.h"
#include "cmd/telemetry/explainer.h"
#include "cmd/telemetry/missing_kinds.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "scheduling/explain.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using scheduling::PartitionedBy;

constexpr size_t kWidth = 100;

struct ExplainFlags {
  std::string pod, kubeconfig, context, output = "text", catalogue, config;
  std::vector<std::string> files;
  bool what_if = false;
};

Result<std::shared_ptr<const cluster::Pod>> FindWaiting(const ClusterObjects& objects,
                                                        const std::string& key) {
  const auto found =
      std::ranges::find_if(objects.pods, [&](const auto& pod) { return pod->Key() == key; });
  if (found == objects.pods.end()) return NotFound("pod " + key + " not found");
  const cluster::Pod& pod = **found;
  if (scheduling::IsPending(pod)) return *found;
  if (pod.Finished())
    return Invalid(fmt::format("pod {} is not pending: it is {}", key, pod.phase));
  if (pod.meta.deleted)
    return Invalid(fmt::format("pod {} is not pending: it is being deleted", key));
  if (pod.node_name.empty()) {
    return Invalid(fmt::format("pod {} is not pending: it is {}", key, pod.phase));
  }
  return Invalid(fmt::format("pod {} is not pending: it is bound to node {}", key, pod.node_name));
}

// Configuration of nos scheduler, or of another scheduler, which is simulated as the partitioner
// does.
Result<scheduling::ConfigurationUse> UseOf(const ExplainFlags& flags, const cluster::Pod& pod) {
  bool ours = flags.what_if || pod.scheduler_name == kOurScheduler;
  if (!ours && !flags.config.empty()) {
    NOS_ASSIGN(ours, SpeaksOfNos(flags.config));
    if (!ours) {
      std::cerr << fmt::format(
          "note: {} does not mention nos scheduler: read as "
          "kube-scheduler's, which does not partition GPUs\n",
          Printable(flags.config));
    }
  }
  if (!ours) return scheduling::ConfigurationUse{.simulates = true};
  return scheduling::ConfigurationUse{.default_name = kOurScheduler,
                                      .partitioned_by = PartitionedBy::kScheduler};
}

Result<std::unique_ptr<Deciders>> ChooseDeciders(const ExplainFlags& flags,
                                                 const cluster::Pod& pod) {
  NOS_ASSIGN(const scheduling::ConfigurationUse use, UseOf(flags, pod));
  NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(flags.config, use));
  auto deciders =
      std::make_unique<Deciders>(std::move(file.configuration), pod.scheduler_name, flags.what_if);
  const std::string& name = deciders->of_pod().scheduler_name;
  if (name != pod.scheduler_name && !flags.what_if) {
    std::cerr << fmt::format("note: scheduler {} has no known profile; using the profile of {}\n",
                             Printable(pod.scheduler_name), name);
  }
  return deciders;
}

// Prints the scheduler's own last message if it differs from this explanation.
void NoteContradiction(const ExplainFlags& flags, const cluster::Pod& pod,
                       const scheduling::Explanation& why) {
  const cluster::Condition* said = pod.FindCondition("PodScheduled");
  const bool refused = said != nullptr && said->status == "False" &&
                       said->reason == "Unschedulable" && !said->message.empty();
  const bool waits = !why.place || !why.gang.empty() || !why.gate.empty();
  if (!refused || waits || flags.what_if) return;
  const std::string_view hint =
      flags.config.empty() ? "if the scheduler has a configuration file, give it with --config"
                           : "the cluster may have changed since";
  std::cerr << Printable(fmt::format("note: its scheduler reported: {} ({})", said->message, hint))
            << "\n";
}

Status RunExplain(const ExplainFlags& flags) {
  const auto slash = flags.pod.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == flags.pod.size() ||
      flags.pod.find('/', slash + 1) != std::string::npos) {
    return Invalid("'" + flags.pod + "' is not NAMESPACE/NAME");
  }
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(ClusterObjects objects, flags.files.empty()
                                         ? ReadLiveCluster(flags.kubeconfig, flags.context)
                                         : ReadDump(flags.files));
  NOS_ASSIGN(SharedPod pod, FindWaiting(objects, flags.pod));
  NOS_ASSIGN(const std::unique_ptr<Deciders> deciders, ChooseDeciders(flags, *pod));
  if (objects.is_dump) pod = LeaveOutMissing(pod, objects.around);
  const scheduling::Explanation why = ExplainWaiting(objects, pod, *deciders, catalogue);
  NoteContradiction(flags, *pod, why);
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(scheduling::ToJson(why)) << "\n";
    return Status::Ok();
  }
  if (flags.what_if) std::cout << "If nos scheduler placed the pod now:\n";
  const std::string text = scheduling::ToText(why, kWidth);
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) std::cout << Printable(std::string(line)) << "\n";
  }
  return Status::Ok();
}

}  // namespace

void AddExplainCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* explain =
      root.add_subcommand("explain", "Explain why a pod is pending, and what would help");
  explain->require_subcommand(1);
  explain->footer(
      "Examples:\n"
      "  nos explain pod default/trainer\n"
      "  nos explain pod default/trainer --what-if");
  CLI::App* command =
      explain->add_subcommand("pod", "Explain why a pod is pending, and what would help");
  auto flags = std::make_shared<ExplainFlags>();
  command->add_option("pod", flags->pod, "Namespace and name of the pod")
      ->required()
      ->option_text("NAMESPACE/NAME");
  command->add_flag(
      "--what-if", flags->what_if,
      "Show the node, and slices and evictions needed, if nos scheduler placed the pod now");
  command
      ->add_option("-f,--file", flags->files,
                   "Dump to read in place of a cluster: YAML or JSON of nodes, pods and objects "
                   "they refer to; - reads stdin")
      ->option_text("FILE");
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  command->add_option("--config", flags->config, "Configuration file of the pod's scheduler")
      ->option_text("FILE");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer(
      "Examples:\n"
      "  nos explain pod default/trainer\n"
      "  nos explain pod default/trainer --what-if -o json\n"
      "  kubectl get nodes,pods,pvc,pv,sc -A -o yaml | nos explain pod default/trainer -f -");
  RunWhenChosen(*command, chosen, "nos explain pod", [flags] { return RunExplain(*flags); });
}

}  // namespace nos::cmd
