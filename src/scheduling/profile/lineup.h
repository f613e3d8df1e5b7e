// Which plugins run at which extension point: what a profile enables and disables, laid over the
// default plugins.
//
//   PluginSets sets;
//   sets.At(Point::kScore).enabled.push_back({"NodeAffinity", 5});
//   const Lineup lineup = LineUp(sets);
//   for (const PluginChoice& choice : lineup.At(Point::kFilter)) ...   // in the order they run
//
// Semantics: kube-scheduler's. What is said of one point goes before what is said of multiPoint,
// and that before the default; who is enabled and disabled at once is enabled; plugins that a point
// names although multiPoint has them come first there, those that only the point has come last.
// Unlike there, "*" does not disable plugins that kube-scheduler does not have (CapacityScheduling,
// GpuPacking, GpuCutting): a profile written for kube-scheduler cannot mean them. By name they are
// disabled like others.
//
// Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scheduling/framework.h"

namespace nos::scheduling {

enum class Point {
  kPreEnqueue,
  kQueueSort,
  kPreFilter,
  kFilter,
  kPostFilter,
  kPreScore,
  kScore,
  kReserve,
  kPermit,
  kPreBind,
  kBind,
  kPostBind,
};
inline constexpr size_t kPoints = 12;
// As a profile's `plugins` names it: "preEnqueue".
std::string_view NameOf(Point point);

// The plugins that this scheduler is itself: no class implements them.
inline constexpr std::string_view kPrioritySort = "PrioritySort";
inline constexpr std::string_view kDefaultPreemption = "DefaultPreemption";
inline constexpr std::string_view kDefaultBinder = "DefaultBinder";
// A plugin that is both: whom it lets in is asked of a class, whom it evicts the scheduler finds.
inline constexpr std::string_view kCapacityScheduling = "CapacityScheduling";

struct PluginChoice {
  std::string name;
  int32_t weight = 0;  // of its score; 0 counts as 1, as in kube-scheduler
  friend bool operator==(const PluginChoice&, const PluginChoice&) = default;
};

struct PluginSet {
  std::vector<PluginChoice> enabled;
  std::set<std::string, std::less<>> disabled;  // also "*"
};

struct PluginSets {
  PluginSet multi_point;
  std::array<PluginSet, kPoints> points;
  PluginSet& At(Point point) { return points[static_cast<size_t>(point)]; }
  const PluginSet& At(Point point) const { return points[static_cast<size_t>(point)]; }
};

struct Lineup {
  std::array<std::vector<PluginChoice>, kPoints> points;
  std::vector<PluginChoice>& At(Point point) { return points[static_cast<size_t>(point)]; }
  const std::vector<PluginChoice>& At(Point point) const {
    return points[static_cast<size_t>(point)];
  }
  bool Has(Point point, std::string_view plugin) const;
};

// Whether there is such a plugin.
bool IsPlugin(std::string_view name);
// Those that "*" does not mean.
std::vector<std::string_view> OwnPlugins();
// Without this one.
void Remove(std::string_view plugin, Lineup& lineup);
// Whether it does something at that point.
bool TakesPart(std::string_view plugin, Point point);

// REQUIRES: nobody is enabled twice in one set. Plugins that nobody knows are left out, and, where
// GPUs are cut elsewhere, those that cut them.
Lineup LineUp(const PluginSets& sets, GpusCut gpus_cut);
// With those that cut GPUs, after all others where they are not there yet.
Lineup WithCuts(Lineup lineup);

}  // namespace nos::scheduling
