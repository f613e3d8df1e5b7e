#include "cmd/nodecheck/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "cmd/nodecheck/memory_probe.h"
#include "device/mps_tool.h"

namespace nos::cmd {
namespace {

using device::GpuInfo;
using device::GpuInstance;

constexpr auto kProgramWithin = std::chrono::minutes(2);
constexpr auto kDaemonWithin = std::chrono::seconds(10);
constexpr int64_t kShareMiB = 1024;
constexpr std::string_view kRemedy =
    "run the command as root, with no other program that partitions GPUs";

std::string Name(const GpuInfo& info) { return fmt::format("GPU {}", info.index); }

// "" if nothing uses the GPU, else the reason why it is left alone.
std::string WhyNot(device::NvmlBackend& backend, const GpuFacts& gpu) {
  const GpuInfo& info = gpu.described.info;
  if (!info.problem.empty()) return "it does not answer";
  // This looks again as late as possible: a program may have started since the machine was read.
  const device::Readings now = backend.MeasureGpu(info.index);
  const auto unlisted = now.unmeasured.find(device::metric::kProcesses);
  if (unlisted != now.unmeasured.end()) return "its programs cannot be listed";
  if (!now.processes.empty()) return Count(now.processes.size(), "program") + " on it";
  if (!info.mig_enabled) return "";
  const auto instances = backend.ListInstances(info.index);
  if (!instances.ok()) return "its instances cannot be listed";
  return instances->empty() ? "" : Count(instances->size(), "instance") + " on it";
}

Status RunProgramOn(const std::string& program, const std::vector<std::string>& variables) {
  if (program.empty()) return Status::Ok();
  NOS_ASSIGN(const ProgramEnd end,
             RunProgram({{program}, EnvironmentWith(variables)}, {.within = kProgramWithin}));
  if (end.how == "exit status 0") return Status::Ok();
  return {Code::kUnavailable,
          fmt::format("{}: {}: {}", program, end.how, Shortened(end.output, 200))};
}

// The programs of a trial: the user's, and one that uses GPU memory up to the limit.
struct Runs {
  Status program{};
  Result<MemoryProbe> probe = NotFound("nothing was tried");
};
Runs RunBoth(const TrialOptions& options, int64_t limit_mib,
             const std::vector<std::string>& variables) {
  return {RunProgramOn(options.program, variables),
          ProbeMemory(options.cuda_library, limit_mib, variables)};
}

void ReportLimit(const std::string& code, const std::string& what, const Result<MemoryProbe>& probe,
                 int64_t limit_mib, Findings& findings) {
  if (!probe.ok() && probe.status().code() == Code::kNotFound) {
    return findings.NotChecked(
        code, fmt::format("{}: no CUDA program was run: {}", what, probe.status().message()),
        "name the root of the driver's files (--driver-root)");
  }
  if (!probe.ok()) {
    return findings.Fail(
        code, fmt::format("{}: a CUDA program failed: {}", what, probe.status().message()),
        "run the command on the machine itself: this container may lack device "
        "nodes, such as those of the instance");
  }
  if (const std::string problem = ProblemOf(*probe, limit_mib); !problem.empty()) {
    return findings.Fail(code, fmt::format("{}: a CUDA program ran, but {}", what, problem),
                         "the driver does not keep what it was asked for: use another version, and "
                         "report this output");
  }
  findings.Ok(code,
              fmt::format("{}: a CUDA program wrote {} MiB of GPU memory, and was refused more "
                          "than its {} MiB",
                          what, probe->allocated_mib, limit_mib));
}

std::string WithProgram(const TrialOptions& options) {
  return options.program.empty() ? "" : "; " + options.program + " ran on it";
}

// The profile with the fewest slices that the driver can place.
struct Place {
  std::string profile;
  uint8_t start = 0;
  int64_t memory_mib = 0;
};
std::optional<Place> SmallestPlacement(const GpuFacts& gpu) {
  const device::DriverProfile* smallest = nullptr;
  for (const auto& one : gpu.described.profiles) {
    const device::DriverProfile& profile = one.profile;
    if (profile.placements.empty()) continue;
    if (smallest == nullptr || profile.slices < smallest->slices) smallest = &profile;
  }
  if (smallest == nullptr) return std::nullopt;
  return Place{smallest->name, static_cast<uint8_t>(smallest->placements.front().start),
               smallest->memory_mib};
}

bool Lists(const Result<std::vector<GpuInstance>>& instances, const GpuInstance& made) {
  return instances.ok() &&
         std::ranges::find(*instances, made.id, &GpuInstance::id) != instances->end();
}

void TryMig(device::NvmlBackend& backend, const GpuFacts& gpu, const TrialOptions& options,
            Findings& findings) {
  const GpuInfo& info = gpu.described.info;
  const auto place = SmallestPlacement(gpu);
  if (!place) {
    return findings.NotChecked("MigTrial",
                               Name(info) + " not tried: the driver lists no placement");
  }
  const auto made = backend.Create(info.index, place->profile, place->start);
  if (!made.ok()) {
    return findings.Fail("MigTrial",
                         fmt::format("{}: cannot create {}@{}: {}", Name(info), place->profile,
                                     place->start, made.status().message()),
                         std::string(kRemedy));
  }
  const bool listed = Lists(backend.ListInstances(info.index), *made);
  const Runs ran = RunBoth(options, place->memory_mib, {"CUDA_VISIBLE_DEVICES=" + made->uuid});
  // Always, whatever happened in it.
  const Status removed = backend.Destroy(info.index, made->id);
  const bool remains = Lists(backend.ListInstances(info.index), *made);
  const std::string what = fmt::format("{}: {}@{}", Name(info), place->profile, place->start);
  if (!removed.ok() || remains) {
    return findings.Fail("MigTrial",
                         fmt::format("{} was created and is still there: {}", what,
                                     removed.ok() ? "the driver lists it" : removed.message()),
                         fmt::format("remove it: nvidia-smi mig -i {} -gi {} -dci; nvidia-smi mig "
                                     "-i {} -gi {} -dgi",
                                     info.index, made->id, info.index, made->id));
  }
  if (!listed || made->uuid.empty()) {
    return findings.Fail("MigTrial", what + " was created, and the driver did not list it",
                         "use a newer driver");
  }
  if (!ran.program.ok()) {
    return findings.Fail("MigTrial", fmt::format("{}: {}", what, ran.program.message()),
                         "does the program run on the whole machine? Is libcuda.so.1 visible?");
  }
  findings.Ok("MigTrial", fmt::format("{} was created and removed{}", what, WithProgram(options)));
  ReportLimit("MigMemoryLimit", what, ran.probe, place->memory_mib, findings);
}

// A daemon of our own: programs outside its pipe folder do not notice it.
Result<Runs> ServeShare(const device::MpsTool& tool, const TrialOptions& options) {
  NOS_RETURN_IF_ERROR(tool.MakeFolders());
  NOS_ASSIGN(const ProcessHandle daemon, tool.StartDaemon());
  Status done = tool.Ask("get_default_active_thread_percentage", kDaemonWithin).status();
  // The daemon listens a moment after its start.
  const auto deadline = std::chrono::steady_clock::now() + kDaemonWithin;
  while (!done.ok() && !daemon.Ended() && std::chrono::steady_clock::now() < deadline) {
    done = tool.Ask("get_default_active_thread_percentage", kDaemonWithin).status();
  }
  const std::string limit = "1G";
  if (done.ok()) {
    done = tool.Ask("set_default_device_pinned_mem_limit 0 " + limit, kDaemonWithin).status();
  }
  Runs runs;
  if (done.ok()) {
    runs = RunBoth(options, kShareMiB,
                   {"CUDA_MPS_PIPE_DIRECTORY=" + tool.options().pipe_folder,
                    "CUDA_VISIBLE_DEVICES=0", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=" + limit});
    done = runs.program;
  }
  const Status quit = tool.Ask("quit", kDaemonWithin).status();
  if (!quit.ok()) daemon.Kill();
  tool.RemovePipes();
  if (!done.ok()) return done;
  return runs;
}

void TryMps(const Machine& machine, const GpuFacts& gpu, const TrialOptions& options,
            Findings& findings) {
  const GpuInfo& info = gpu.described.info;
  if (machine.mps_program.empty()) {
    return findings.NotChecked("MpsTrial",
                               Name(info) + " not tried: nvidia-cuda-mps-control is not in $PATH");
  }
  if (info.compute_mode != device::ComputeMode::kDefault) {
    return findings.NotChecked(
        "MpsTrial", Name(info) +
                        " not tried: its compute mode is not the default one, and is not "
                        "changed here");
  }
  const device::MpsTool tool({.program = machine.mps_program,
                              .gpu_uuid = info.uuid,
                              .pipe_folder = options.mps_folder + "/pipe",
                              .log_folder = options.mps_folder + "/log"});
  const Result<Runs> served = ServeShare(tool, options);
  if (!served.ok()) {
    return findings.Fail("MpsTrial", fmt::format("{}: {}", Name(info), served.status().message()),
                         "the log of the daemon has the reason; " + std::string(kRemedy));
  }
  findings.Ok("MpsTrial", fmt::format("{}: an MPS daemon with a limit of 1 GiB started and ended{}",
                                      Name(info), WithProgram(options)));
  ReportLimit("MpsMemoryLimit", Name(info), served->probe, kShareMiB, findings);
}

}  // namespace

void TryGpus(device::NvmlBackend& backend, const Machine& machine, const TrialOptions& options,
             Findings& findings) {
  findings.Begin("Trial");
  for (const GpuFacts& gpu : machine.gpus) {
    const GpuInfo& info = gpu.described.info;
    const std::string code = info.mig_enabled ? "MigTrial" : "MpsTrial";
    // An agent would offer the trial's instance to pods.
    const std::string why = machine.agent.empty()
                                ? WhyNot(backend, gpu)
                                : fmt::format("an agent of nos runs here ({})", machine.agent);
    if (!why.empty()) {
      findings.NotChecked(code, fmt::format("{} not tried: {}", Name(info), why));
    } else if (info.mig_enabled) {
      TryMig(backend, gpu, options, findings);
    } else {
      if (info.mig_capable) {
        findings.NotChecked("MigTrial", Name(info) +
                                            " not tried: its MIG mode is off, and is not "
                                            "changed here");
      }
      TryMps(machine, gpu, options, findings);
    }
  }
}

}  // namespace nos::cmd
