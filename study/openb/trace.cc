#include "study/openb/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "study/openb/csv.h"

namespace nos::study {
namespace {

using scheduling::packing::kAnyModel;
using scheduling::packing::kMaxModels;
using scheduling::packing::kWholeGpu;
using scheduling::packing::Node;
using scheduling::packing::PodKind;

constexpr int64_t kMaxCpuMilli = 100'000'000;  // per node or pod
constexpr int64_t kMaxMemoryMib = 1'000'000'000;
constexpr int64_t kMaxGpus = 64;
constexpr int64_t kMaxPodsPerNode = 1001;  // pod limit of a node in the protocol

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

template <typename T>
Status SortByName(std::vector<Named<T>>& rows, const OpenbFile& file, std::string_view what) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twin = std::adjacent_find(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twin == rows.end()) return Status::Ok();
  return Invalid(fmt::format("{}: {} '{}' is listed twice", file.name, what, twin->name));
}

// Numbers the models in the order of their first occurrence.
Result<int> ModelNumber(std::vector<std::string>& models, const CsvRow& row) {
  NOS_ASSIGN(const std::string_view name, row.Text("model"));
  const auto found = std::find(models.begin(), models.end(), name);
  if (found != models.end()) return static_cast<int>(found - models.begin());
  if (models.size() == kMaxModels) {
    return row.Error("model", fmt::format("more than {} different GPU models", kMaxModels));
  }
  models.emplace_back(name);
  return static_cast<int>(models.size() - 1);
}

Result<Named<Node>> ParseNode(const CsvRow& row, std::vector<std::string>& models) {
  Node node;
  NOS_ASSIGN(const std::string_view name, row.Text("sn"));
  NOS_ASSIGN(node.cpu_milli, row.Number("cpu_milli", 0, kMaxCpuMilli));
  NOS_ASSIGN(node.memory_mib, row.Number("memory_mib", 0, kMaxMemoryMib));
  NOS_ASSIGN(const int64_t gpus, row.Number("gpu", 0, kMaxGpus));
  if (gpus > 0) {
    NOS_ASSIGN(node.model, ModelNumber(models, row));
  }
  node.gpu_milli.assign(gpus, kWholeGpu);
  node.pods = kMaxPodsPerNode;
  return Named<Node>{name, std::move(node)};
}

// Models that no node has are left out.
uint64_t ParseModels(std::string_view spec, const std::vector<std::string>& models) {
  if (Trim(spec).empty()) return kAnyModel;
  uint64_t set = 0;
  for (const std::string_view name : Split(spec, '|')) {
    const auto found = std::find(models.begin(), models.end(), Trim(name));
    if (found != models.end()) set |= uint64_t{1} << (found - models.begin());
  }
  return set;
}

Result<Named<PodKind>> ParsePod(const CsvRow& row, const std::vector<std::string>& models) {
  PodKind pod;
  NOS_ASSIGN(const std::string_view name, row.Text("name"));
  NOS_ASSIGN(pod.cpu_milli, row.Number("cpu_milli", 0, kMaxCpuMilli));
  NOS_ASSIGN(pod.memory_mib, row.Number("memory_mib", 0, kMaxMemoryMib));
  NOS_ASSIGN(const int64_t gpus, row.Number("num_gpu", 0, kMaxGpus));
  const int64_t least = gpus == 0 ? 0 : gpus == 1 ? 1 : kWholeGpu;
  NOS_ASSIGN(const int64_t milli, row.Number("gpu_milli", least, gpus == 0 ? 0 : kWholeGpu));
  pod.gpus = static_cast<int>(gpus);
  pod.milli = static_cast<int>(milli);
  if (gpus > 0) pod.models = ParseModels(row.Optional("gpu_spec"), models);
  return Named<PodKind>{name, pod};
}

Status ParseNodes(const OpenbFile& file, OpenbTrace& trace) {
  NOS_ASSIGN(const Csv csv, Csv::Parse(file.name, file.text));
  std::vector<Named<Node>> nodes;
  size_t gpus = 0;
  for (const CsvRow& row : csv.rows()) {
    NOS_ASSIGN(Named<Node> node, ParseNode(row, trace.models));
    gpus += node.value.gpu_milli.size();
    nodes.push_back(std::move(node));
  }
  if (gpus == 0) return Invalid(fmt::format("{}: no node has a GPU", file.name));
  NOS_RETURN_IF_ERROR(SortByName(nodes, file, "node"));
  for (Named<Node>& node : nodes) trace.nodes.push_back(std::move(node.value));
  return Status::Ok();
}

Status ParsePods(const OpenbFile& file, OpenbTrace& trace) {
  NOS_ASSIGN(const Csv csv, Csv::Parse(file.name, file.text));
  std::vector<Named<PodKind>> pods;
  bool any_gpu = false;
  for (const CsvRow& row : csv.rows()) {
    NOS_ASSIGN(const Named<PodKind> pod, ParsePod(row, trace.models));
    any_gpu |= pod.value.gpus > 0;
    pods.push_back(pod);
  }
  if (!any_gpu) return Invalid(fmt::format("{}: no pod asks for a GPU", file.name));
  NOS_RETURN_IF_ERROR(SortByName(pods, file, "pod"));
  for (const Named<PodKind>& pod : pods) trace.pods.push_back(pod.value);
  return Status::Ok();
}

}  // namespace

Result<OpenbTrace> ParseOpenb(const OpenbFile& nodes, const OpenbFile& pods) {
  OpenbTrace trace;
  NOS_RETURN_IF_ERROR(ParseNodes(nodes, trace));
  NOS_RETURN_IF_ERROR(ParsePods(pods, trace));
  return trace;
}

}  // namespace nos::study
