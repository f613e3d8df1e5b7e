#include "cmd/query/history_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "cmd/cli/gpu_sharing_mode.h"
#include "telemetryserver/stories.h"

namespace nos::cmd {
namespace {

const JsonArray& ArrayAt(const Json& object, std::string_view key) {
  static const JsonArray none;
  const Json* found = Find(object, key);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

double NumberAt(const Json& object, std::string_view key, double fallback) {
  const Json* found = Find(object, key);
  return found != nullptr && found->is_number() ? found->to_number<double>() : fallback;
}

std::string PodOf(const Json& holder, std::string_view name) {
  return fmt::format("{}/{}", FindString(holder, "namespace"), FindString(holder, name));
}

// Layout of a node's GPUs, with the properties shown in history.
struct NodeLayout {
  using Slice = std::tuple<double, std::string>;  // GPU, "1g.5gb@3"; "" for the whole
  std::set<Slice> slices;
  std::set<std::pair<std::string, Slice>> held;  // pod, slice
  std::map<double, std::string> modes;  // by GPU, for GPUs that support several sharing modes
};

NodeLayout LayoutOf(const Json& record) {
  NodeLayout layout;
  for (const Json& gpu : ArrayAt(record, "gpus")) {
    const double index = NumberAt(gpu, "index", 0);
    if (!ArrayAt(gpu, "switches").empty())
      layout.modes[index] = SharingModeText(SharingModeIn(gpu));
    for (const Json& holder : ArrayAt(gpu, "holders")) {
      layout.held.insert({PodOf(holder, "pod"), {index, ""}});
    }
    for (const Json& instance : ArrayAt(gpu, "instances")) {
      const NodeLayout::Slice slice{index, fmt::format("{}@{}", FindString(instance, "profile"),
                                                       NumberAt(instance, "start", 0))};
      layout.slices.insert(slice);
      for (const Json& holder : ArrayAt(instance, "holders")) {
        layout.held.insert({PodOf(holder, "pod"), slice});
      }
    }
  }
  return layout;
}

std::string SliceText(const NodeLayout::Slice& slice) {
  const auto& [gpu, placed] = slice;
  return placed.empty() ? fmt::format("gpu {}", gpu) : fmt::format("{} of gpu {}", placed, gpu);
}

// "gpu 0 -7g.40gb@0 +3g.20gb@4; a/web takes 3g.20gb@4 of gpu 0"; "gpu 1 +10gb@0 (time slices ->
// MPS)"; "" for no difference.
std::string Difference(const NodeLayout& before, const NodeLayout& after) {
  std::map<double, std::string> by_gpu;
  for (const auto& [gpu, placed] : before.slices) {
    if (!after.slices.contains({gpu, placed})) by_gpu[gpu] += " -" + placed;
  }
  for (const auto& [gpu, placed] : after.slices) {
    if (!before.slices.contains({gpu, placed})) by_gpu[gpu] += " +" + placed;
  }
  for (const auto& [gpu, mode] : after.modes) {
    const auto was = before.modes.find(gpu);
    if (was == before.modes.end() || was->second == mode) continue;
    by_gpu[gpu] += fmt::format(" ({} -> {})", was->second, mode);
  }
  std::vector<std::string> parts;
  parts.reserve(by_gpu.size());
  for (const auto& [gpu, changes] : by_gpu) parts.push_back(fmt::format("gpu {}{}", gpu, changes));
  for (const auto& [pod, slice] : before.held) {
    if (after.held.contains({pod, slice})) continue;
    parts.push_back(fmt::format("{} gives back {}", pod, SliceText(slice)));
  }
  for (const auto& [pod, slice] : after.held) {
    if (before.held.contains({pod, slice})) continue;
    parts.push_back(fmt::format("{} takes {}", pod, SliceText(slice)));
  }
  return Join(parts, "; ");
}

// The sentence of the decision, and its reason where the sentence lacks it.
HistoryRow DecisionRow(const Json& body) {
  const telemetryserver::Story story = telemetryserver::StoryOf(body);
  HistoryRow row;
  row.kind = story.type;
  std::vector<std::string> about;
  for (const telemetryserver::StoryPod& pod : story.victims)
    about.push_back(fmt::format("{}/{}", pod.ns, pod.name));
  row.subject = Join(about.empty() ? story.nodes : about, ", ");
  row.what = story.sentence;
  const std::string_view why = FindString(body, "why");
  if (!why.empty() && story.sentence.find(story.reason) == std::string::npos) {
    row.what += "; " + story.reason;
  }
  return row;
}

// A decision is reported again as it progresses. The row shows when it was made, or when it was
// done.
double TimeOf(const Json& body) {
  const double at = NumberAt(body, "at", 0), took = NumberAt(body, "took_ms", -1);
  const double made = NumberAt(body, "made", -1);
  if (made < 0 || FindString(body, "kind") != "decision") return at;
  if (FindString(body, "state") == "planned") return made;
  return took < 0 ? at : made + took;
}

HistoryRow RowOf(const Json& body) {
  const std::string_view kind = FindString(body, "kind");
  if (kind == "decision") return DecisionRow(body);
  if (kind == "xid") {
    return {0, "xid", std::string(FindString(body, "gpu")),
            fmt::format("XID {}: {}", NumberAt(body, "xid", 0), FindString(body, "message"))};
  }
  if (kind == "gap") {
    const double lost = NumberAt(body, "lost", 0);
    const std::string why(FindString(body, "why"));
    return {0, "gap", std::string(FindString(body, "source")),
            !why.empty() ? why
            : lost > 0   ? fmt::format("{} records were lost before delivery", lost)
                         : "its spool was recreated: undelivered records, if any, are lost"};
  }
  if (kind != "event") return {};
  const std::string_view ns = FindString(body, "object", "namespace");
  return {0, "event",
          fmt::format("{} {}{}{}", FindString(body, "object", "kind"), ns, ns.empty() ? "" : "/",
                      FindString(body, "object", "name")),
          fmt::format("{}: {}", FindString(body, "reason"), FindString(body, "message"))};
}

std::string SlicesText(const Json& gpu) {
  const auto held = [](const Json& what) {
    std::vector<std::string> pods;
    for (const Json& holder : ArrayAt(what, "holders")) pods.push_back(PodOf(holder, "pod"));
    return pods.empty() ? std::string("free") : Join(pods, " and ");
  };
  std::vector<std::string> parts;
  for (const Json& instance : ArrayAt(gpu, "instances")) {
    parts.push_back(fmt::format("{}@{} {}", FindString(instance, "profile"),
                                NumberAt(instance, "start", 0), held(instance)));
  }
  if (parts.empty()) parts.push_back(NumberAt(gpu, "slots", 0) > 0 ? "not partitioned" : held(gpu));
  return Join(parts, ", ");
}

// Like ParseDuration, with days: "90d", "1d12h".
Result<Duration> ParseAgo(std::string_view text) {
  constexpr int64_t kMaxDays = 30'000;
  const size_t end = text.find('d');
  if (end == std::string_view::npos) return ParseDuration(text);
  const auto days = ParseInt(text.substr(0, end));
  if (!days || *days < 0 || *days > kMaxDays) return Invalid("invalid number of days");
  const std::string_view rest = text.substr(end + 1);
  NOS_ASSIGN(const Duration further, rest.empty() ? Duration() : ParseDuration(rest));
  if (further < Duration()) return Invalid("negative part");
  return *days * Duration(std::chrono::hours(24)) + further;
}

}  // namespace

Result<int64_t> ParseMoment(std::string_view text, int64_t now) {
  if (text == "now") return now;
  if (const auto time = ParseTime(text); time.ok()) {
    return std::chrono::floor<std::chrono::milliseconds>(*time).time_since_epoch().count();
  }
  const auto ago = ParseAgo(text);
  if (ago.ok() && *ago >= Duration()) {
    return now - std::chrono::duration_cast<std::chrono::milliseconds>(*ago).count();
  }
  return Invalid(
      fmt::format("'{}' is not a time: write 2026-01-02T03:04:05Z, now, or a duration before now "
                  "such as 90m or 30d",
                  Shortened(text, 60)));
}

std::vector<HistoryRow> HistoryRows(const std::vector<Json>& events, const Json& before) {
  std::map<std::string, NodeLayout> layouts;
  for (const Json& node : ArrayAt(before, "nodes")) {
    layouts[std::string(FindString(node, "node"))] = LayoutOf(node);
  }
  std::vector<HistoryRow> rows;
  std::map<std::string, size_t> decision_rows;  // row of a decision in a state
  for (const Json& body : events) {
    HistoryRow row = RowOf(body);
    if (FindString(body, "kind") == "layout") {
      row.kind = "layout";
      row.subject = FindString(body, "node");
      NodeLayout after = LayoutOf(body);
      row.what = Difference(layouts[row.subject], after);
      layouts[row.subject] = std::move(after);
    }
    if (row.what.empty()) continue;
    if (FindString(body, "kind") == "decision") {
      const auto [known, fresh] = decision_rows.try_emplace(
          fmt::format("{}/{}", FindString(body, "state"), FindString(body, "id")), rows.size());
      if (!fresh) {  // it has served more pods meanwhile
        rows[known->second].what = std::move(row.what);
        continue;
      }
    }
    row.at = static_cast<int64_t>(TimeOf(body));
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, {}, &HistoryRow::at);
  return rows;
}

TextTable HistoryTable(const std::vector<HistoryRow>& rows) {
  TextTable table({"TIME", "KIND", "OF", "WHAT"});
  for (const HistoryRow& row : rows) {
    const Time at{std::chrono::milliseconds(row.at)};
    table.AddRow({FormatTime(at), row.kind, row.subject, row.what});
  }
  return table;
}

TextTable LayoutTable(const Json& gpus, const std::string& node) {
  TextTable table({"NODE", "GPU", "MODEL", "UTIL", "MEMORY", "SLICES"});
  for (const Json& each : ArrayAt(gpus, "nodes")) {
    if (!node.empty() && FindString(each, "node") != node) continue;
    for (const Json& gpu : ArrayAt(each, "gpus")) {
      const Json* metrics = Find(gpu, "metrics");
      const double use = metrics == nullptr ? -1 : NumberAt(*metrics, "utilization", -1);
      const double memory = metrics == nullptr ? -1 : NumberAt(*metrics, "memory_used", -1);
      table.AddRow({std::string(FindString(each, "node")),
                    fmt::format("{}", NumberAt(gpu, "index", 0)),
                    std::string(FindString(gpu, "product")),
                    use < 0 ? "-" : fmt::format("{:.0f} %", use * 100),
                    memory < 0 ? "-" : fmt::format("{:.0f} MiB", memory), SlicesText(gpu)});
    }
  }
  return table;
}

}  // namespace nos::cmd
