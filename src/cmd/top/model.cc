#include "cmd/top/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "base/text.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "gpu/modes.h"
#include "telemetry/records.h"

namespace nos::cmd {
namespace {

constexpr int kMaxSlots = 960;
constexpr std::array<std::pair<std::string_view, TopSort>, 5> kSorts = {
    {{"state", TopSort::kState},
     {"name", TopSort::kName},
     {"utilization", TopSort::kUtilization},
     {"memory", TopSort::kMemory},
     {"age", TopSort::kAge}}};

const JsonArray& ArrayAt(const Json& object, std::string_view key) {
  static const JsonArray none;
  const Json* found = Find(object, key);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::optional<double> NumberAt(const Json& object, std::string_view key) {
  const Json* found = Find(object, key);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->to_number<double>();
}

// A number from 0 to `most`; 0 for any other value.
int64_t CountAt(const Json& object, std::string_view key, int64_t most) {
  const double number = NumberAt(object, key).value_or(0);
  return number >= 0 && number <= static_cast<double>(most) ? static_cast<int64_t>(number) : 0;
}

int64_t TimeAt(const Json& object, std::string_view key) {
  return CountAt(object, key, int64_t{9'999'999'999'999});
}

std::string PodOf(const Json& holder) {
  return fmt::format("{}/{}", FindString(holder, "namespace"), FindString(holder, "pod"));
}

// The first holder that `options` show, "ns/name"; "" if there is none.
std::string HolderOf(const Json& held, const TopOptions& options) {
  for (const Json& holder : ArrayAt(held, "holders")) {
    if (options.ns.empty() || FindString(holder, "namespace") == options.ns) return PodOf(holder);
  }
  return {};
}

void AddSpans(const Json& gpu, const TopOptions& options, GpuRow& row) {
  if (row.slots == 0) {
    row.slots = 1;
    if (std::string pod = HolderOf(gpu, options); !pod.empty()) row.spans = {{0, 1, "", pod}};
    return;
  }
  for (const Json& instance : ArrayAt(gpu, "instances")) {
    SlotSpan span{static_cast<int>(CountAt(instance, "start", kMaxSlots)),
                  static_cast<int>(CountAt(instance, "size", kMaxSlots)),
                  std::string(FindString(instance, "profile")), HolderOf(instance, options)};
    const bool others = !options.ns.empty() && span.pod.empty();
    if (span.size > 0 && !others) row.spans.push_back(span);
  }
  if (row.by_memory) LayOut(row.spans);
  std::ranges::sort(row.spans, {}, &SlotSpan::start);
  // Parts of an instance start at consecutive slots, independent of their share of the instance.
  for (size_t i = 1; i < row.spans.size(); ++i) {
    SlotSpan& before = row.spans[i - 1];
    const int between = row.spans[i].start - before.start;
    if (between > 0 && gpu::ParsePartName(before.profile)) {
      before.size = std::min(before.size, between);
    }
  }
  int end = 0;
  std::erase_if(row.spans, [&](const SlotSpan& span) {
    if (span.start < end || span.start + span.size > row.slots) return true;
    end = span.start + span.size;
    return false;
  });
}

// Sharing mode of an unused GPU. "" if the GPU is not managed, or the server does not report the
// mode.
std::string IdleSharingMode(const Json& gpu, const GpuRow& row) {
  if (!ArrayAt(gpu, "switches").empty()) return SharingModeText("");
  if (row.slots == 0 || FindSharingMode(gpu) == nullptr) return {};
  return std::string(row.by_memory ? gpu::kMpsMode : gpu::kMigMode);
}

TopGpu GpuOf(const Json& node, const Json& gpu, const TopOptions& options) {
  TopGpu result;
  result.row.node = FindString(node, "node");
  result.row.index = static_cast<int>(CountAt(gpu, "index", 1'000'000));
  result.row.model = FindString(gpu, "product");
  result.row.slots = static_cast<int>(CountAt(gpu, "slots", kMaxSlots));
  const Json* mig = Find(gpu, "mig");
  const std::string_view mode = SharingModeIn(gpu);
  result.row.by_memory = result.row.slots > 0 && mig != nullptr && mig->is_bool() &&
                         !mig->get_bool() && (mode.empty() || mode == gpu::kMpsMode);
  result.row.sharing_mode = mode.empty() ? IdleSharingMode(gpu, result.row) : std::string(mode);
  AddSpans(gpu, options, result.row);
  result.health = FindString(gpu, "health");
  if (const Json* metrics = Find(gpu, "metrics")) {
    result.utilization = NumberAt(*metrics, "utilization");
    result.memory = NumberAt(*metrics, "memory_used");
    result.capacity = NumberAt(*metrics, "memory_total");
  }
  return result;
}

std::string SliceText(const Json& slice) {
  const std::string_view profile = FindString(slice, "profile");
  return std::string(profile.empty() ? "gpu" : profile);
}

void AddSlices(const Json& pod, TopPod& row) {
  const JsonArray& slices = ArrayAt(pod, "slices");
  if (slices.empty()) return;
  row.slice = slices.size() == 1 ? SliceText(slices[0])
                                 : fmt::format("{} x {}", slices.size(), SliceText(slices[0]));
  row.where =
      fmt::format("{} gpu {}", FindString(slices[0], "node"), CountAt(slices[0], "gpu", 1'000'000));
  if (slices.size() > 1) row.where += fmt::format(" +{}", slices.size() - 1);
  double utilization = 0, memory = 0;
  size_t measured = 0, with_memory = 0;
  for (const Json& slice : slices) {
    if (const auto share = NumberAt(slice, "utilization")) utilization += *share, ++measured;
    if (const auto used = NumberAt(slice, "memory_used")) memory += *used, ++with_memory;
  }
  if (measured > 0) row.utilization = utilization / static_cast<double>(measured);
  if (with_memory > 0) row.memory = memory;
}

TopPod PodRow(const Json& pod, int64_t at) {
  using std::chrono::milliseconds;
  TopPod row;
  row.name = fmt::format("{}/{}", FindString(pod, "namespace"), FindString(pod, "name"));
  row.state = FindString(pod, "state");
  row.slice = AsksOf(pod);
  row.where = FindString(pod, "node");
  AddSlices(pod, row);
  if (row.state == "pending") row.why = FindString(pod, "why");
  const int64_t started = TimeAt(pod, "started");
  const int64_t since = started > 0 ? started : TimeAt(pod, "created");
  row.age = milliseconds(std::max<int64_t>(0, at - since));
  if (const int64_t estimate = TimeAt(pod, "estimate"); estimate > 0) {
    row.starts_in = milliseconds(std::max<int64_t>(0, estimate - at));
  }
  return row;
}

bool HasEnded(std::string_view state) { return state == "succeeded" || state == "failed"; }

bool IsIn(const Json& pod, const TopOptions& options) {
  return (options.ns.empty() || FindString(pod, "namespace") == options.ns) &&
         !HasEnded(FindString(pod, "state"));
}

bool Shows(const Json& gpu, const TopOptions& options) {
  if (options.ns.empty() || !HolderOf(gpu, options).empty()) return true;
  return std::ranges::any_of(ArrayAt(gpu, "instances"), [&](const Json& instance) {
    return !HolderOf(instance, options).empty();
  });
}

// Ties are sorted by name.
void Sort(TopSort by, TopRows& rows) {
  // Unmeasured values come last.
  const auto down = [](std::optional<double> value) { return -value.value_or(-1); };
  const auto gpu_key = [&](const TopGpu& gpu) {
    return by == TopSort::kUtilization ? down(gpu.utilization)
           : by == TopSort::kMemory    ? down(gpu.memory)
                                       : 0;
  };
  const auto pod_key = [&](const TopPod& pod) {
    const bool waits = pod.state == "pending";
    const double age = -ToSeconds(pod.age);
    return by == TopSort::kUtilization ? down(pod.utilization)
           : by == TopSort::kMemory    ? down(pod.memory)
           : by == TopSort::kAge       ? age
           // Pending pods come first, the longest pending one at the top.
           : by == TopSort::kState && waits ? age - 1
                                            : 0;
  };
  std::ranges::sort(rows.gpus, [&](const TopGpu& a, const TopGpu& b) {
    const double left = gpu_key(a), right = gpu_key(b);
    if (left != right) return left < right;
    if (a.row.node != b.row.node) return NaturallyLess()(a.row.node, b.row.node);
    return a.row.index < b.row.index;
  });
  std::ranges::sort(rows.pods, [&](const TopPod& a, const TopPod& b) {
    const double left = pod_key(a), right = pod_key(b);
    return left != right ? left < right : NaturallyLess()(a.name, b.name);
  });
}

}  // namespace

std::optional<TopSort> TopSortNamed(std::string_view name) {
  for (const auto& [known, sort] : kSorts) {
    if (known == name) return sort;
  }
  return std::nullopt;
}

std::vector<std::string> TopSortNames() {
  std::vector<std::string> names;
  names.reserve(kSorts.size());
  for (const auto& [name, sort] : kSorts) names.emplace_back(name);
  return names;
}

void TopModel::Load(const Json& gpus, const std::vector<Json>& workloads, const Json* overview) {
  nodes_.clear();
  pods_.clear();
  overview_ = nullptr;
  TakeNodes(gpus);
  for (const Json& page : workloads) TakePods(page, "pods");
  if (overview != nullptr) overview_ = *overview;
  at_ = TimeAt(gpus, "at");
}

bool TopModel::Apply(std::string_view event, const Json& data) {
  if (event == "reset") return false;
  if (event == "gpus") TakeNodes(data);
  if (event == "workloads") {
    TakePods(data, "changed");
    for (const Json& uid : ArrayAt(data, "removed")) {
      if (uid.is_string()) pods_.erase(std::string(View(uid.get_string())));
    }
  }
  if (event == "overview" && data.is_object()) overview_ = data;
  if (event == "at") at_ = std::max(at_, TimeAt(data, "at"));
  return true;
}

void TopModel::TakeNodes(const Json& data) {
  if (const Json* all = Find(data, "all"); all != nullptr && all->is_array()) {
    std::set<std::string, std::less<>> there;
    for (const Json& name : all->get_array()) {
      if (name.is_string()) there.emplace(View(name.get_string()));
    }
    std::erase_if(nodes_, [&](const auto& node) { return !there.contains(node.first); });
  }
  for (const Json& node : ArrayAt(data, "nodes")) {
    if (const std::string name(FindString(node, "node")); !name.empty()) nodes_[name] = node;
  }
}

void TopModel::TakePods(const Json& data, std::string_view key) {
  for (const Json& pod : ArrayAt(data, key)) {
    if (const std::string uid(FindString(pod, "uid")); !uid.empty()) pods_[uid] = pod;
  }
}

std::string AsksOf(const Json& pod) {
  constexpr std::string_view kMig = "mig-";
  std::vector<std::string> asks;
  const Json* requests = Find(pod, "requests");
  if (requests == nullptr || !requests->is_object()) return {};
  for (const auto& [key, amount] : requests->get_object()) {
    std::string_view name(key.data(), key.size());
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || !amount.is_number()) continue;  // cpu, memory
    name.remove_prefix(slash + 1);
    if (name.starts_with(kMig)) name.remove_prefix(kMig.size());
    const double count = amount.to_number<double>();
    asks.push_back(count == 1 ? std::string(name) : fmt::format("{} x {}", count, name));
  }
  return Join(asks, ", ");
}

TopRows RowsOf(const TopModel& model, const TopOptions& options) {
  TopRows rows;
  rows.ns = options.ns;
  int64_t fresh = 0;
  for (const auto& [name, node] : model.nodes()) {
    fresh = std::max(fresh, TimeAt(node, "fresh_at"));
    const size_t before = rows.gpus.size();
    for (const Json& gpu : ArrayAt(node, "gpus")) {
      if (Shows(gpu, options)) rows.gpus.push_back(GpuOf(node, gpu, options));
    }
    if (rows.gpus.size() > before) ++rows.nodes;
  }
  for (const auto& [uid, pod] : model.pods()) {
    if (!IsIn(pod, options)) continue;
    rows.pods.push_back(PodRow(pod, model.at()));
    const std::string& state = rows.pods.back().state;
    if (state == "running") ++rows.running;
    if (state == "pending") ++rows.waiting;
  }
  if (options.ns.empty()) {
    rows.allocated = NumberAt(model.overview(), "allocated");
    rows.used = NumberAt(model.overview(), "used");
  }
  if (fresh > 0) rows.silent = std::chrono::milliseconds(std::max<int64_t>(0, model.at() - fresh));
  Sort(options.sort, rows);
  return rows;
}

Json TopJson(const TopModel& model, const TopOptions& options) {
  JsonArray nodes, pods;
  for (const auto& [name, node] : model.nodes()) {
    const bool shown = std::ranges::any_of(ArrayAt(node, "gpus"),
                                           [&](const Json& gpu) { return Shows(gpu, options); });
    if (shown) nodes.push_back(node);
  }
  for (const auto& [uid, pod] : model.pods()) {
    if (IsIn(pod, options)) pods.push_back(pod);
  }
  return {{"at", model.at()},
          {"overview", model.overview()},
          {"nodes", std::move(nodes)},
          {"pods", std::move(pods)}};
}

std::string UnaskedNote(const Json& session, const std::string& ns) {
  const int64_t unasked = telemetry::IntegerOr(session, "unasked_namespaces", 0);
  if (unasked <= 0 || !ns.empty()) return {};
  return fmt::format(
      "access to {} more namespaces is not checked yet, and your objects there are missing; "
      "-n NAME checks one at once",
      unasked);
}

}  // namespace nos::cmd
