// nos explain: why one pod waits, from a live cluster or a dump. Changes nothing anywhere.
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
#include "cmd/telemetry/explainer.h"
#include "cmd/telemetry/missing_kinds.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/daemon/scheduler_file.h"
#include "cmd/terminal.h"
#include "scheduling/explain.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using scheduling::GpusCut;

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
  if (found == objects.pods.end()) return NotFound("there is no pod " + key);
  const cluster::Pod& pod = **found;
  if (scheduling::IsPending(pod)) return *found;
  if (pod.Finished()) return Invalid(fmt::format("pod {} does not wait: it is {}", key, pod.phase));
  if (pod.meta.deleted)
    return Invalid(fmt::format("pod {} does not wait: it is being deleted", key));
  if (pod.node_name.empty()) {
    return Invalid(fmt::format("pod {} does not wait: it is {}", key, pod.phase));
  }
  return Invalid(fmt::format("pod {} does not wait: it is bound to node {}", key, pod.node_name));
}

// Of nos scheduler, or of another one, which is simulated as the partitioner does.
Result<scheduling::ConfigurationUse> UseOf(const ExplainFlags& flags, const cluster::Pod& pod) {
  bool ours = flags.what_if || pod.scheduler_name == kOurScheduler;
  if (!ours && !flags.config.empty()) {
    NOS_ASSIGN(ours, SpeaksOfNos(flags.config));
    if (!ours) {
      std::cerr << fmt::format(
          "note: {} does not speak of nos scheduler: taken for "
          "kube-scheduler's, which has no GPUs cut\n",
          Printable(flags.config));
    }
  }
  if (!ours) return scheduling::ConfigurationUse{.simulates = true};
  return scheduling::ConfigurationUse{.default_name = kOurScheduler, .gpus_cut = GpusCut::kHere};
}

Result<std::unique_ptr<Deciders>> ChooseDeciders(const ExplainFlags& flags,
                                                 const cluster::Pod& pod) {
  NOS_ASSIGN(const scheduling::ConfigurationUse use, UseOf(flags, pod));
  NOS_ASSIGN(SchedulerFile file, ReadSchedulerFile(flags.config, use));
  auto deciders =
      std::make_unique<Deciders>(std::move(file.configuration), pod.scheduler_name, flags.what_if);
  const std::string& name = deciders->of_pod().scheduler_name;
  if (name != pod.scheduler_name && !flags.what_if) {
    std::cerr << fmt::format("note: no profile of scheduler {} is known; decided as by {}\n",
                             Printable(pod.scheduler_name), name);
  }
  return deciders;
}

// What its scheduler said last is no secret where something else comes out here.
void NoteContradiction(const ExplainFlags& flags, const cluster::Pod& pod,
                       const scheduling::Explanation& why) {
  const cluster::Condition* said = pod.FindCondition("PodScheduled");
  const bool refused = said != nullptr && said->status == "False" &&
                       said->reason == "Unschedulable" && !said->message.empty();
  const bool waits = !why.place || !why.gang.empty() || !why.gate.empty();
  if (!refused || waits || flags.what_if) return;
  const std::string_view hint = flags.config.empty()
                                    ? "if it runs with a configuration, give that with --config"
                                    : "the cluster may have changed since";
  std::cerr << Printable(
                   fmt::format("note: its scheduler itself said: {} ({})", said->message, hint))
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
  if (flags.what_if) std::cout << "If nos scheduler decided now:\n";
  const std::string text = scheduling::ToText(why, kWidth);
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) std::cout << Printable(std::string(line)) << "\n";
  }
  return Status::Ok();
}

}  // namespace

void AddExplainCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* explain = root.add_subcommand("explain", "Tell why a pod waits, and what would help");
  explain->require_subcommand(1);
  explain->footer(
      "Examples:\n"
      "  nos explain pod default/trainer\n"
      "  nos explain pod default/trainer --what-if");
  CLI::App* command = explain->add_subcommand("pod", "Why a pod waits, and what would help");
  auto flags = std::make_shared<ExplainFlags>();
  command->add_option("pod", flags->pod, "The pod")->required()->option_text("NAMESPACE/NAME");
  command->add_flag(
      "--what-if", flags->what_if,
      "Where it would go, and what be cut or evicted, if nos scheduler placed it now");
  command
      ->add_option(
          "-f,--file", flags->files,
          "A dump instead of a cluster: YAML or JSON of nodes, pods and what they refer to; "
          "- is stdin")
      ->option_text("FILE");
  command->add_option("-o,--output", flags->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  command->add_option("--config", flags->config, "The configuration that its scheduler reads")
      ->option_text("FILE");
  command->add_option("--kubeconfig", flags->kubeconfig, "Default: $KUBECONFIG or ~/.kube/config")
      ->option_text("FILE");
  command->add_option("--context", flags->context, "Default: the file's current context")
      ->option_text("NAME");
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer(
      "Examples:\n"
      "  nos explain pod default/trainer\n"
      "  nos explain pod default/trainer --what-if -o json\n"
      "  kubectl get nodes,pods,pvc,pv,sc -A -o yaml | nos explain pod default/trainer -f -");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = RunExplain(*flags);
      return status.ok() ? 0 : Fail("nos explain pod", status);
    };
  });
}

}  // namespace nos::cmd
