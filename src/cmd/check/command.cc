// nos check: is this cluster ready for nos, or why not; with --node, is this machine. Changes
// nothing, except for --try on an idle GPU.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cmd/catalogue_flag.h"
#include "cmd/cli/nvml_library.h"
#include "cmd/clustercheck/reader.h"
#include "cmd/clustercheck/topics.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/findings/report.h"
#include "cmd/nodecheck/memory_probe.h"
#include "cmd/nodecheck/topics.h"
#include "cmd/nodecheck/trial.h"
#include "cmd/terminal.h"
#include "kube/connection.h"
#include "kube/http_transport.h"

namespace nos::cmd {
namespace {

constexpr size_t kWidth = 100;

struct CheckFlags {
  std::string kubeconfig, context, ns, output = "text", catalogue;
  bool node = false, trial = false;
  std::string library, program, cuda_library;
  int64_t memory_probe = 0;
  MachineOptions machine;
};

int Print(const std::vector<Finding>& findings, const std::string& output) {
  if (output == "json") {
    std::cout << WriteJsonPretty(FindingsJson(findings)) << "\n";
  } else {
    std::cout << FindingsText(findings, std::clamp<size_t>(TableWidth(), 60, kWidth));
  }
  return FindingsExitCode(findings);
}

Result<std::vector<Finding>> LookAtCluster(const CheckFlags& flags,
                                           const gpu::Catalogue& catalogue) {
  NOS_ASSIGN(kube::ConnectionConfig config, kube::LoadConnection(flags.kubeconfig, flags.context));
  kube::HttpTransport transport(std::move(config));
  NOS_ASSIGN(Snapshot snapshot, ReadSnapshot(transport, flags.ns, SystemClock().Now()));
  snapshot.own_version = NOS_VERSION;
  snapshot.catalogue = &catalogue;
  return CheckCluster(snapshot);
}

// An empty folder for the MPS daemon of a trial, removed at the end.
class TrialFolder {
 public:
  TrialFolder() {
    std::error_code failed;
    std::string pattern = std::filesystem::temp_directory_path(failed) / "nos-check-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TrialFolder() {
    std::error_code failed;
    if (!path_.empty()) std::filesystem::remove_all(path_, failed);
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The library of the driver whose files were found, else any that the loader finds.
std::string CudaLibraryOf(const CheckFlags& flags, const Machine& machine) {
  constexpr const char* kName = "libcuda.so.1";
  const std::string found =
      machine.files.ok() ? device::PathOf(kName, *machine.files, flags.machine.host) : "";
  return found.empty() ? kName : found;
}

std::vector<Finding> LookAtMachine(const CheckFlags& flags, const gpu::Catalogue& catalogue) {
  Findings findings;
  const auto library = OpenNvml(flags.library, flags.machine.host);
  if (!library.ok()) {
    findings.Begin("Driver");
    findings.Fail("DriverLibrary", library.status().message(),
                  "install NVIDIA's driver, or name its library with --nvml-library");
    return findings.all();
  }
  device::NvmlBackend backend(**library, catalogue);
  const Machine machine = ReadMachine(backend, catalogue, flags.machine);
  CheckMachine(machine, findings);
  if (flags.trial && machine.gpus_status.ok()) {
    // A signal does not end the trial between the creation and the removal of an instance.
    const Interrupt delayed("");
    const TrialFolder folder;
    TryGpus(backend, machine, {flags.program, folder.path(), CudaLibraryOf(flags, machine)},
            findings);
  }
  return findings.all();
}

// Flags of one kind of check together with the other.
Status CheckFlagsOf(const CheckFlags& flags) {
  if (flags.node && !(flags.kubeconfig + flags.context + flags.ns).empty()) {
    return Invalid("--node looks at this machine only, without --kubeconfig, --context or -n");
  }
  if (!flags.node && (flags.trial || !flags.program.empty())) {
    return Invalid("--try and --program need --node");
  }
  if (!flags.program.empty() && !flags.trial) return Invalid("--program needs --try");
  return Status::Ok();
}

int RunCheck(const CheckFlags& flags) {
  if (flags.memory_probe > 0) return RunMemoryProbe(flags.cuda_library, flags.memory_probe);
  if (const Status flagged = CheckFlagsOf(flags); !flagged.ok()) return Fail("nos check", flagged);
  const auto catalogue = ReadCatalogue(flags.catalogue);
  if (!catalogue.ok()) return Fail("nos check", catalogue.status());
  if (flags.node) return Print(LookAtMachine(flags, *catalogue), flags.output);
  const auto findings = LookAtCluster(flags, *catalogue);
  if (!findings.ok()) return Fail("nos check", findings.status());
  return Print(*findings, flags.output);
}

void AddNodeFlags(CLI::App& command, CheckFlags& flags) {
  command.add_flag("--node", flags.node, "Check this machine and its GPUs, not a cluster");
  command.add_flag("--try", flags.trial,
                   "With --node: create and remove a MIG instance, or run an MPS daemon, on GPUs "
                   "that are idle, and use memory there up to the limit; modes are not changed");
  command
      .add_option("--program", flags.program,
                  "With --try: program to run on the instance or share, such as a CUDA sample")
      ->option_text("FILE");
  // The trial starts this program with them (memory_probe.h).
  command.add_option("--memory-probe", flags.memory_probe)->group("");
  command.add_option("--cuda-library", flags.cuda_library)->group("");
  command
      .add_option("--nvml-library", flags.library,
                  "With --node. Default: $NOS_NVML_LIBRARY or libnvidia-ml.so.1")
      ->option_text("FILE");
  command
      .add_option("--driver-root", flags.machine.host.driver,
                  "With --node: root of the driver's files, such as /run/nvidia/driver")
      ->option_text("DIR");
  command
      .add_option("--device-root", flags.machine.host.dev,
                  "With --node: the host's /dev, as this process sees it")
      ->option_text("DIR [/dev]");
  command
      .add_option("--kubelet-dir", flags.machine.kubelet_folder,
                  "With --node: folder of the kubelet")
      ->option_text("DIR [/var/lib/kubelet]");
  command
      .add_option("--cdi-dir", flags.machine.cdi_folder,
                  "With --node: folder of CDI specifications")
      ->option_text("DIR [/var/run/cdi]");
}

}  // namespace

void AddCheckCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "check", "Check that a cluster, or a machine with GPUs, is ready for nos");
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("-n,--namespace", flags->ns, "Namespace of nos; default: found by its pods")
      ->option_text("NAMESPACE");
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  AddClusterFlags(*command, flags->kubeconfig, flags->context);
  AddCatalogueFlag(*command, flags->catalogue);
  AddNodeFlags(*command, *flags);
  command->footer(
      "Exit codes: 0 nothing failed (warnings are allowed), 1 something failed, 2 invalid flags.\n"
      "Examples:\n"
      "  nos check\n"
      "  nos check -n nos-system -o json\n"
      "  nos check --node --try");
  command->callback([&chosen, flags] { chosen.action = [flags] { return RunCheck(*flags); }; });
}

}  // namespace nos::cmd
