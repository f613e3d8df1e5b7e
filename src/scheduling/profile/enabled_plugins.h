// Determines which plugins run at each extension point: the enabled and disabled plugins of a
// profile applied to the default plugins.
//
//   PluginSets sets;
//   sets.At(Point::kScore).enabled.push_back({"NodeAffinity", 5});
//   const EnabledPlugins enabled = ResolveProfile(sets);
//   for (const PluginChoice& choice : enabled.At(Point::kFilter)) ...   // in execution order
//
// Semantics are kube-scheduler's:
//
// - A setting for one point overrides multiPoint, which overrides the defaults.
// - A plugin that is both enabled and disabled is enabled.
// - Plugins of multiPoint that a point also names come first at that point. Plugins that only the
//   point names come last.
//
// Unlike in kube-scheduler, "*" does not disable plugins that kube-scheduler lacks
// (CapacityScheduling, GpuPacking, GpuPartitioning), because a profile written for kube-scheduler
// cannot mean them. They can be disabled by name.
//
// Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scheduling/plugin.h"

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
// The name in a profile's `plugins`: "preEnqueue".
std::string_view NameOf(Point point);

// Plugins that the scheduler implements itself, without a plugin class.
inline constexpr std::string_view kPrioritySort = "PrioritySort";
inline constexpr std::string_view kDefaultPreemption = "DefaultPreemption";
inline constexpr std::string_view kDefaultBinder = "DefaultBinder";
// Implemented in both ways: a class decides on admission, the scheduler finds pods to evict.
inline constexpr std::string_view kCapacityScheduling = "CapacityScheduling";

struct PluginChoice {
  std::string name;
  int32_t weight = 0;  // of its score; 0 counts as 1, as in kube-scheduler
  friend bool operator==(const PluginChoice&, const PluginChoice&) = default;
};

struct PluginSet {
  std::vector<PluginChoice> enabled;
  std::set<std::string, std::less<>> disabled;  // may contain "*"
};

struct PluginSets {
  PluginSet multi_point;
  std::array<PluginSet, kPoints> points;
  PluginSet& At(Point point) { return points[static_cast<size_t>(point)]; }
  const PluginSet& At(Point point) const { return points[static_cast<size_t>(point)]; }
};

struct EnabledPlugins {
  std::array<std::vector<PluginChoice>, kPoints> points;
  std::vector<PluginChoice>& At(Point point) { return points[static_cast<size_t>(point)]; }
  const std::vector<PluginChoice>& At(Point point) const {
    return points[static_cast<size_t>(point)];
  }
  bool Has(Point point, std::string_view plugin) const;
};

// True if a plugin has this name.
bool IsPlugin(std::string_view name);
// Plugins that "*" does not include.
std::vector<std::string_view> OwnPlugins();
// Removes the plugin from all points.
void Remove(std::string_view plugin, EnabledPlugins& enabled);
// True if the plugin has an effect at that point.
bool TakesPart(std::string_view plugin, Point point);

// REQUIRES: no plugin is enabled twice in one set. Leaves out unknown plugins and, with
// PartitionedBy::kPartitioner, plugins that partition GPUs.
EnabledPlugins ResolveProfile(const PluginSets& sets, PartitionedBy partitioned_by);
// Adds the plugins that partition GPUs at the end of each point, unless present.
EnabledPlugins WithPartitioning(EnabledPlugins enabled);

}  // namespace nos::scheduling
