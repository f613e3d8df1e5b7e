#include "cmd/nodecheck/smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "cmd/nodecheck/machine.h"
#include "device/backend.h"

namespace nos::cmd {
namespace {

namespace metric = device::metric;

// Source: nvidia-smi --help-query-gpu.
constexpr std::array<std::string_view, 9> kFields{"uuid",
                                                  "name",
                                                  "driver_version",
                                                  "memory.total",
                                                  "memory.used",
                                                  "power.draw",
                                                  "enforced.power.limit",
                                                  "temperature.gpu",
                                                  "mig.mode.current"};

struct Compared {
  std::string_view field, metric;
  double tolerance;  // readings are taken at different moments
};
constexpr std::array<Compared, 5> kReadings{{{"memory.total", metric::kMemoryTotal, 1},
                                             {"memory.used", metric::kMemoryUsed, 64},
                                             {"power.draw", metric::kPower, 60},
                                             {"enforced.power.limit", metric::kPowerLimit, 0.5},
                                             {"temperature.gpu", metric::kTemperature, 5}}};

class Comparison {
 public:
  explicit Comparison(const std::map<std::string, std::string>& row, std::string gpu)
      : row_(row), gpu_(std::move(gpu)) {}

  void Text(std::string_view field, const std::string& ours) {
    const std::string theirs = Value(field);
    if (theirs.empty()) return;
    ++count_;
    if (ours != theirs) Differ(field, ours, theirs);
  }
  void Number(const Compared& one, const device::Readings& readings) {
    const std::string theirs = Value(one.field);
    const auto there = ParseDouble(theirs);
    if (!there) return;
    ++count_;
    const auto here = readings.Find(one.metric);
    if (!here) {
      Differ(one.field, "not read", theirs);
    } else if (std::abs(*here - *there) > one.tolerance) {
      Differ(one.field, fmt::format("{}", *here), theirs);
    }
  }
  size_t count() const { return count_; }
  std::vector<std::string> differences() const { return differences_; }

 private:
  // "" for "[N/A]" and the like.
  std::string Value(std::string_view field) const {
    const auto found = row_.find(std::string(field));
    return found == row_.end() || found->second.starts_with('[') ? "" : found->second;
  }
  void Differ(std::string_view field, const std::string& ours, const std::string& theirs) {
    differences_.push_back(fmt::format("{}: {} is {} here, {} there", gpu_, field, ours, theirs));
  }

  const std::map<std::string, std::string>& row_;
  const std::string gpu_;
  size_t count_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace

std::vector<std::string> SmiQuery(const std::string& program) {
  std::string fields;
  for (const std::string_view field : kFields) {
    if (!fields.empty()) fields += ",";
    fields += field;
  }
  return {program, "--query-gpu=" + fields, "--format=csv,noheader,nounits"};
}

std::map<std::string, std::map<std::string, std::string>> ReadSmiTable(std::string_view output) {
  std::map<std::string, std::map<std::string, std::string>> rows;
  for (const std::string_view line : Split(output, '\n')) {
    const auto cells = Split(line, ',');
    if (cells.size() != kFields.size()) continue;
    auto& row = rows[std::string(Trim(cells[0]))];
    for (size_t i = 0; i < cells.size(); ++i) row[std::string(kFields.at(i))] = Trim(cells[i]);
  }
  return rows;
}

std::vector<std::string> SmiDifferences(const Machine& machine, size_t& compared) {
  std::vector<std::string> all;
  compared = 0;
  for (const GpuFacts& gpu : machine.gpus) {
    const device::GpuInfo& info = gpu.described.info;
    if (!info.problem.empty()) continue;
    const std::string name = fmt::format("GPU {}", info.index);
    const auto row = machine.smi_gpus.find(info.uuid);
    if (row == machine.smi_gpus.end()) {
      all.push_back(name + ": nvidia-smi does not list " + info.uuid);
      continue;
    }
    Comparison comparison(row->second, name);
    comparison.Text("name", info.product);
    comparison.Text("driver_version", machine.driver);
    if (info.mig_capable) {
      comparison.Text("mig.mode.current", info.mig_enabled ? "Enabled" : "Disabled");
    }
    for (const Compared& one : kReadings) comparison.Number(one, gpu.readings);
    compared += comparison.count();
    std::ranges::move(comparison.differences(), std::back_inserter(all));
  }
  return all;
}

}  // namespace nos::cmd
