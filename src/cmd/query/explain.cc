// nos explain: why one pod is pending, or where it is, from a live cluster or a dump. Changes no
// object.
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
#include "cmd/query/get_report.h"
#include "cmd/query/plan_evictions.h"
#include "cmd/telemetry/explainer.h"
#include "cmd/telemetry/missing_kinds.h"
#include "cmd/telemetry/read_cluster.h"
#include "cmd/terminal.h"
#include "controllers/pod_facts.h"
#include "gpu/product.h"
#include "scheduling/explain.h"
#include "scheduling/pod_state.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

using scheduling::PartitionedBy;

constexpr size_t kWidth = 100;

struct ExplainFlags {
  std::vector<std::string> words;  // "NAME", "pod NAME", "pod/NAME", NAME with or without namespace
  std::string ns, kubeconfig, context, output = "text", catalogue, config;
  std::vector<std::string> files;
  bool what_if = false;
};

bool IsPodWord(std::string_view word) { return word == "pod" || word == "pods" || word == "po"; }

// "NAME" or "NAMESPACE/NAME", from the forms that kubectl accepts.
Result<std::string> NameIn(const ExplainFlags& flags) {
  std::vector<std::string> words = flags.words;
  if (IsPodWord(words.front())) words.erase(words.begin());
  if (words.size() != 1) return Invalid("give one pod: NAME, or NAMESPACE/NAME");
  std::string name = words.front();
  const size_t slash = name.find('/');
  if (slash != std::string::npos && IsPodWord(name.substr(0, slash)) && slash + 1 < name.size()) {
    name.erase(0, slash + 1);  // kubectl's "pod/NAME"; a namespace "pod" needs -n
  }
  const size_t parts = Split(name, '/').size();
  if (parts > 2 || name.starts_with('/') || name.ends_with('/')) {
    return Invalid("'" + name + "' is neither NAME nor NAMESPACE/NAME");
  }
  if (flags.ns.empty()) return name;
  if (parts == 2) return Invalid("give the namespace once: by -n, or before the name");
  return flags.ns + "/" + name;
}

// Without a namespace the name must be of one pod only.
Result<SharedPod> FindPod(const ClusterObjects& objects, const std::string& name) {
  const bool qualified = name.find('/') != std::string::npos;
  std::vector<SharedPod> found;
  for (const SharedPod& pod : objects.pods) {
    if ((qualified ? pod->Key() : pod->meta.name) == name) found.push_back(pod);
  }
  if (found.empty()) return NotFound("pod " + name + " not found");
  if (found.size() == 1) return found.front();
  std::vector<std::string> namespaces;
  for (const SharedPod& pod : found) namespaces.push_back(pod->meta.ns);
  return Invalid(fmt::format("several pods are named {}; choose one with -n: {}", name,
                             Join(namespaces, ", ")));
}

// The pod's instances and, `with_product`, the products of their GPUs.
std::vector<std::string> DevicesOf(const LiveCluster& live, const cluster::Pod& pod,
                                   bool with_product) {
  std::vector<std::string> devices;
  const cluster::NodeInfo* node = live.snapshot.Find(pod.node_name);
  if (node == nullptr || pod.Finished()) return devices;
  for (const cluster::Gpu& gpu : node->gpus.gpus) {
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.pod != pod.Key()) continue;
      devices.push_back(
          fmt::format("{} of GPU {}", gpu.model->PlacementName(instance.placement), gpu.index));
      if (with_product) {
        devices.back() += fmt::format(" ({})", gpu::ProductOf(*gpu.model, gpu.alternative));
      }
    }
  }
  return devices;
}

// A pod that has a node, or has ended: where it is, on which devices, and who may evict it.
void ExplainPlaced(ClusterObjects objects, const cluster::Pod& pod, const gpu::Catalogue& catalogue,
                   const std::string& output) {
  scheduling::PodFacts facts = controllers::FactsOf(pod, objects.pods);
  const bool may_be_evicted = facts.state == "running" || facts.state == "starting";
  if (may_be_evicted) facts.evictors = EvictorsOf(pod, objects, catalogue);
  LiveCluster live = MakeLiveCluster(std::move(objects.nodes), std::move(objects.pods), catalogue);
  live.server_time = objects.server_time;
  facts.devices = DevicesOf(live, pod, false);
  const std::vector<std::string> devices = DevicesOf(live, pod, true);
  const scheduling::PodSummary summary = scheduling::Summarize(facts);
  if (output == "json") {
    JsonObject json{{"pod", pod.Key()},
                    {"state", facts.state},
                    {"node", pod.node_name},
                    {"devices", JsonArray(devices.begin(), devices.end())},
                    {"message", pod.message}};
    if (facts.since) json["since"] = FormatTime(*facts.since);
    for (auto& [key, value] : scheduling::ToJson(summary)) json[key] = value;
    std::cout << WriteJsonPretty(json) << "\n";
    return;
  }
  std::cout << Printable(summary.headline) << "\n";
  const auto line = [](std::string_view label, const std::string& text) {
    if (!text.empty()) std::cout << fmt::format("{:<14}{}\n", label, Printable(text));
  };
  if (facts.since) {
    const Duration age = TimeIn(live) - *facts.since;
    line(pod.Finished() ? "ended" : "since",
         fmt::format("{} ({} ago)", FormatTime(*facts.since), FormatAge(age)));
  }
  for (const std::string& device : devices) line("uses", device);
  line("cause", summary.cause);
  line("evictable by", summary.evictable_by);
  if (facts.ends) line("ends", summary.eta_reason);
}

// Configuration of nos scheduler, or of another scheduler, which is simulated as the partitioner
// does.
Result<scheduling::ConfigurationUse> UseOf(const ExplainFlags& flags, const cluster::Pod& pod,
                                           const ClusterObjects& objects) {
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
  const bool named = pod.scheduler_name == kOurScheduler && flags.config.empty();
  return scheduling::ConfigurationUse{
      .default_name = kOurScheduler,
      .partitioned_by = named ? PartitionedFor(objects, kOurScheduler) : PartitionedBy::kScheduler};
}

Result<std::unique_ptr<Deciders>> ChooseDeciders(const ExplainFlags& flags, const cluster::Pod& pod,
                                                 const ClusterObjects& objects) {
  NOS_ASSIGN(const scheduling::ConfigurationUse use, UseOf(flags, pod, objects));
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
  NOS_ASSIGN(const std::string name, NameIn(flags));
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(ClusterObjects objects, flags.files.empty()
                                         ? ReadLiveCluster(flags.kubeconfig, flags.context)
                                         : ReadDump(flags.files));
  NOS_ASSIGN(SharedPod pod, FindPod(objects, name));
  if (!scheduling::IsPending(*pod)) {
    if (flags.what_if)
      return Invalid("--what-if is for pending pods: pod " + pod->Key() + " is " +
                     std::string(controllers::StateOf(*pod)));
    ExplainPlaced(std::move(objects), *pod, catalogue, flags.output);
    return Status::Ok();
  }
  NOS_ASSIGN(const std::unique_ptr<Deciders> deciders, ChooseDeciders(flags, *pod, objects));
  if (objects.is_dump) pod = LeaveOutMissing(pod, objects.context);
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
  CLI::App* command = root.add_subcommand(
      "explain", "Explain why a pod is pending and what would help, or where it runs");
  auto flags = std::make_shared<ExplainFlags>();
  OfferNames(*command->add_option("pod", flags->words, "Name of the pod")->required(), "pods",
             "[pod] [NAMESPACE/]NAME");
  command->add_option("-n,--namespace", flags->ns, "Namespace of the pod")->option_text("NAME");
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
      "  nos explain trainer\n"
      "  nos explain pod trainer -n team-a\n"
      "  nos explain team-a/trainer --what-if -o json\n"
      "  kubectl get nodes,pods,pvc,pv,sc -A -o yaml | nos explain team-a/trainer -f -");
  RunWhenChosen(*command, chosen, "nos explain", [flags] { return RunExplain(*flags); });
}

}  // namespace nos::cmd
