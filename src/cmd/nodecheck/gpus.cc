#include <fmt/format.h>

#include <functional>

#include "cmd/nodecheck/topics.h"

namespace nos::cmd {
namespace {

std::string Name(const GpuFacts& gpu) {
  return fmt::format("GPU {} ({})", gpu.described.info.index, gpu.described.info.product);
}

std::vector<std::string> NamesOf(const Machine& machine,
                                 const std::function<bool(const GpuFacts&)>& chosen) {
  std::vector<std::string> names;
  for (const GpuFacts& gpu : machine.gpus) {
    if (chosen(gpu)) names.push_back(Name(gpu));
  }
  return names;
}

bool Answers(const GpuFacts& gpu) { return gpu.described.info.problem.empty(); }

void CheckMig(const Machine& machine, Findings& findings) {
  const auto capable = NamesOf(
      machine, [](const auto& gpu) { return Answers(gpu) && gpu.described.info.mig_capable; });
  if (capable.empty()) {
    return findings.NotChecked("MigMode", "no GPU here has MIG; MPS shares need none");
  }
  const auto pending = NamesOf(machine, [](const auto& gpu) {
    const device::GpuInfo& info = gpu.described.info;
    return info.mig_capable && info.mig_pending != info.mig_enabled;
  });
  const auto on = NamesOf(machine, [](const auto& gpu) { return gpu.described.info.mig_enabled; });
  findings.WarnIfAny("MigMode", pending, "MIG mode changes at the next reset of the GPU",
                     "nvidia-smi --gpu-reset -i GPU with no program on it, or reboot",
                     fmt::format("MIG mode is on for {} of {} that have it", on.size(),
                                 Count(capable.size(), "GPU")));
}

void CheckProfiles(const Machine& machine, Findings& findings) {
  std::vector<std::string> differences, unread;
  size_t profiles = 0;
  for (const GpuFacts& gpu : machine.gpus) {
    if (!gpu.described.instances_status.ok()) {
      unread.push_back(fmt::format("{}: {}", Name(gpu), gpu.described.instances_status.message()));
    }
    for (const auto& profile : gpu.described.profiles) {
      ++profiles;
      for (const std::string& one : profile.differences) {
        differences.push_back(fmt::format("{} {}: {}", Name(gpu), profile.profile.name, one));
      }
    }
    for (const gpu::Profile* row : gpu.described.catalogue_only) {
      differences.push_back(fmt::format("{} {}: the driver lacks it", Name(gpu), row->name));
    }
  }
  findings.FailIfAny("Instances", unread, "MIG instances cannot be listed",
                     "nvidia-smi mig -lgi shows the driver's answer",
                     "MIG instances can be listed");
  if (profiles == 0) {
    return findings.NotChecked("CatalogueAgrees",
                               "the driver lists no profile (Ampere lists them in MIG mode only)");
  }
  findings.WarnIfAny(
      "CatalogueAgrees", differences, "the driver's profiles differ from the catalogue",
      "report this with the output of nos agent --once --print -o json",
      fmt::format("{} of the driver equal the catalogue's", Count(profiles, "profile")));
}

}  // namespace

void CheckGpus(const Machine& machine, Findings& findings) {
  findings.Begin("GPUs");
  if (machine.gpus.empty()) {
    return findings.Fail("GpusAnswer", "the driver lists no GPU", "lspci -d 10de: shows the cards");
  }
  std::vector<std::string> silent;
  for (const GpuFacts& gpu : machine.gpus) {
    if (!Answers(gpu)) silent.push_back(Name(gpu) + ": " + gpu.described.info.problem);
  }
  findings.FailIfAny("GpusAnswer", silent, "GPUs do not answer",
                     "dmesg has the Xid; reset the GPU or reboot",
                     Count(machine.gpus.size(), "GPU") + " answer");
  findings.WarnIfAny("GpuModel",
                     NamesOf(machine,
                             [](const auto& gpu) {
                               return Answers(gpu) && gpu.described.info.mig_capable &&
                                      gpu.described.model == nullptr;
                             }),
                     "GPUs that the catalogue does not have", "add the model: docs/catalogue.md",
                     "the catalogue has every GPU with MIG");
  CheckMig(machine, findings);
  CheckProfiles(machine, findings);
}

}  // namespace nos::cmd
