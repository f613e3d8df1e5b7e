#include "telemetryreporter/sample_text.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "base/table.h"
#include "base/text.h"
#include "device/mig_parts.h"

namespace nos::telemetry {
namespace {

namespace metric = device::metric;

std::string Number(const device::Readings& readings, std::string_view name, double factor,
                   std::string_view unit) {
  const auto value = readings.Find(name);
  if (!value) return "-";
  return fmt::format("{:.0f}{}{}", *value * factor, unit.empty() ? "" : " ", unit);
}

// "54.31 W / 400 W", "1024 / 40960 MiB".
std::string PowerText(const device::Readings& readings) {
  const auto power = readings.Find(metric::kPower);
  if (!power) return "-";
  return fmt::format("{:.1f} / {} W", *power, Number(readings, metric::kPowerLimit, 1, ""));
}

std::string MemoryText(const device::Readings& readings) {
  if (!readings.Find(metric::kMemoryUsed)) return "-";
  return fmt::format("{} / {}", Number(readings, metric::kMemoryUsed, 1, ""),
                     Number(readings, metric::kMemoryTotal, 1, "MiB"));
}

std::string EccText(const device::Readings& readings) {
  return fmt::format("{} / {}", Number(readings, metric::kEccCorrected, 1, ""),
                     Number(readings, metric::kEccUncorrected, 1, ""));
}

std::string HoldersText(const NodeSample& sample, const std::vector<Holder>& holders) {
  if (!sample.holders_status.ok()) return "?";
  std::vector<std::string> names;
  names.reserve(holders.size());
  for (const Holder& holder : holders) {
    names.push_back(fmt::format("{}/{} ({})", holder.ns, holder.pod, holder.container));
  }
  return names.empty() ? "-" : Join(names, ", ");
}

std::string GpuTable(const NodeSample& sample) {
  TextTable table(
      {"GPU", "UTIL", "MEMORY", "POWER", "TEMP", "SM CLOCK", "MEM CLOCK", "ECC (C/U)", "HELD BY"});
  for (const SampledGpu& gpu : sample.gpus) {
    const device::Readings& r = gpu.readings;
    table.AddRow({fmt::to_string(gpu.info.index), Number(r, metric::kUtilization, 100, "%"),
                  MemoryText(r), PowerText(r), Number(r, metric::kTemperature, 1, "C"),
                  Number(r, metric::kSmClock, 1, "MHz"), Number(r, metric::kMemoryClock, 1, "MHz"),
                  EccText(r), HoldersText(sample, gpu.holders)});
  }
  return table.ToString();
}

std::string InstanceTable(const NodeSample& sample) {
  TextTable table({"GPU", "INSTANCE", "ID", "UTIL", "MEMORY", "HELD BY"});
  for (const SampledGpu& gpu : sample.gpus) {
    for (const SampledInstance& sampled : gpu.instances) {
      table.AddRow({fmt::to_string(gpu.info.index),
                    fmt::format("{}@{}", sampled.instance.profile, sampled.instance.start),
                    fmt::to_string(device::DriverIdOf(sampled.instance.id)),
                    Number(sampled.readings, metric::kUtilization, 100, "%"),
                    MemoryText(sampled.readings), HoldersText(sample, sampled.holders)});
    }
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

std::string ProcessTable(const NodeSample& sample) {
  TextTable table({"GPU", "INSTANCE", "PID", "PROCESS", "MEMORY"});
  for (const SampledGpu& gpu : sample.gpus) {
    for (const device::GpuProcess& process : gpu.readings.processes) {
      table.AddRow({fmt::to_string(gpu.info.index),
                    process.instance ? fmt::to_string(*process.instance) : "-",
                    fmt::to_string(process.pid), process.name.empty() ? "?" : process.name,
                    process.memory_mib ? fmt::format("{} MiB", *process.memory_mib) : "-"});
    }
  }
  return table.empty() ? "" : "\n" + table.ToString();
}

// Each reason once, with all metrics that it applies to.
std::string Unmeasured(const NodeSample& sample) {
  std::map<std::string, std::map<std::string, int>> metrics;  // by reason
  for (const SampledGpu& gpu : sample.gpus) {
    for (const auto& [name, why] : gpu.readings.unmeasured) ++metrics[why][name];
    for (const SampledInstance& sampled : gpu.instances) {
      for (const auto& [name, why] : sampled.readings.unmeasured) ++metrics[why][name];
    }
  }
  std::string text;
  for (const auto& [why, names] : metrics) {
    std::vector<std::string> list;
    for (const auto& [name, times] : names) list.push_back(fmt::format("{} ({}x)", name, times));
    text += fmt::format("unmeasured: {}: {}\n", Join(list, ", "), Printable(why));
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string SampleText(const NodeSample& sample) {
  if (sample.gpus.empty()) return "";
  std::string text = GpuTable(sample) + InstanceTable(sample) + ProcessTable(sample);
  text += Unmeasured(sample);
  if (!sample.holders_status.ok()) {
    text += "\nholders of GPUs are not known: " + Printable(sample.holders_status.message()) + "\n";
  }
  return text;
}

}  // namespace nos::telemetry
