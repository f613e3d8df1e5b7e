#include <fmt/format.h>

#include "base/text.h"
#include "cmd/nodecheck/smi.h"
#include "cmd/nodecheck/topics.h"

namespace nos::cmd {
namespace {

constexpr int64_t kOldestDriver = 525;  // docs/install.md

void CheckVersion(const Machine& machine, Findings& findings) {
  const auto major = ParseInt(std::string_view(machine.driver).substr(0, machine.driver.find('.')));
  const std::string text = fmt::format(
      "driver {}, CUDA {}", machine.driver.empty() ? "of unknown version" : machine.driver,
      machine.cuda.empty() ? "of unknown version" : machine.cuda);
  if (!major) {
    findings.Warn("DriverVersion", text, "install a driver that reports its version");
  } else if (*major < kOldestDriver) {
    findings.Fail("DriverVersion", text, fmt::format("install driver {} or newer", kOldestDriver));
  } else {
    findings.Ok("DriverVersion", text);
  }
}

void CompareWithSmi(const Machine& machine, Findings& findings) {
  if (machine.smi.code() == Code::kNotFound) {
    return findings.NotChecked("NvidiaSmi", machine.smi.message());
  }
  if (!machine.smi.ok()) {
    return findings.Warn("NvidiaSmi", "nvidia-smi fails: " + machine.smi.message(),
                         "run it by hand: a mismatch of driver and library shows there");
  }
  size_t compared = 0;
  const std::vector<std::string> differences = SmiDifferences(machine, compared);
  if (compared == 0 && differences.empty()) {
    return findings.NotChecked("NvidiaSmi", "nvidia-smi prints no value that could be compared");
  }
  findings.FailIfAny("NvidiaSmi", differences, "values differ from those of nvidia-smi",
                     "report this with the output of nos check --node -o json",
                     fmt::format("{} equal those of nvidia-smi", Count(compared, "value")));
}

}  // namespace

void CheckDriver(const Machine& machine, Findings& findings) {
  findings.Begin("Driver");
  if (!machine.gpus_status.ok()) {
    return findings.Fail("DriverAnswers", machine.gpus_status.message(),
                         "is the kernel module loaded? nvidia-smi, dmesg");
  }
  findings.Ok("DriverAnswers",
              fmt::format("{} lists {}", machine.library, Count(machine.gpus.size(), "GPU")));
  CheckVersion(machine, findings);
  findings.WarnIfAny("DriverFunctions", machine.limits, "the driver lacks functions",
                     "install a newer driver", "the driver has all functions that nos uses");
  if (machine.events.ok()) {
    findings.Ok("XidEvents", "the driver reports errors of GPUs (Xid) as they happen");
  } else {
    findings.Warn("XidEvents", "errors of GPUs are not noticed: " + machine.events.message(),
                  "look at dmesg, or use a driver that reports events");
  }
  CompareWithSmi(machine, findings);
}

void CheckMachine(const Machine& machine, Findings& findings) {
  CheckDriver(machine, findings);
  if (machine.gpus_status.ok()) {
    CheckGpus(machine, findings);
    CheckReadings(machine, findings);
  }
  CheckFiles(machine, findings);
}

}  // namespace nos::cmd
