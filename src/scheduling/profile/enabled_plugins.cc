#include "scheduling/profile/enabled_plugins.h"

#include <algorithm>

#include "scheduling/registry.h"

namespace nos::scheduling {
namespace {

constexpr std::array<std::string_view, kPoints> kNames = {
    "preEnqueue", "queueSort", "preFilter", "filter",  "postFilter", "preScore",
    "score",      "reserve",   "permit",    "preBind", "bind",       "postBind"};

struct KnownPlugin {
  std::string_view name;
  int weight = 0;
  bool ours = false, partitions = false;
  std::array<bool, kPoints> takes_part{};
};

std::array<bool, kPoints> PartsOf(const Plugin& plugin) {
  std::array<bool, kPoints> parts{};
  const auto set = [&](Point point, bool takes_part) {
    parts[static_cast<size_t>(point)] = takes_part;
  };
  const bool scores = dynamic_cast<const ScorePlugin*>(&plugin) != nullptr;
  set(Point::kPreEnqueue, dynamic_cast<const PreEnqueuePlugin*>(&plugin) != nullptr);
  set(Point::kPreFilter, dynamic_cast<const PreFilterPlugin*>(&plugin) != nullptr);
  set(Point::kFilter, dynamic_cast<const FilterPlugin*>(&plugin) != nullptr);
  set(Point::kPreScore, scores);
  set(Point::kScore, scores);
  set(Point::kReserve, dynamic_cast<const ReservePlugin*>(&plugin) != nullptr);
  set(Point::kPreBind, dynamic_cast<const PreBindPlugin*>(&plugin) != nullptr);
  return parts;
}

KnownPlugin OnlyAt(std::string_view name, Point point) {
  KnownPlugin plugin{name};
  plugin.takes_part[static_cast<size_t>(point)] = true;
  return plugin;
}

// Sorted like the default profile.
std::vector<KnownPlugin> CollectPlugins() {
  std::vector<KnownPlugin> plugins;
  std::vector<std::string> problems;
  const ConfigValue no_arguments(nullptr, "", problems);
  for (const RegisteredPlugin& registered : RegisteredPlugins()) {
    plugins.push_back({registered.name, registered.weight, registered.ours, registered.partitions,
                       PartsOf(*registered.make(no_arguments, {}))});
    // The scheduler implements the eviction part itself.
    if (registered.name == kCapacityScheduling) {
      plugins.back().takes_part[static_cast<size_t>(Point::kPostFilter)] = true;
    }
  }
  plugins.push_back(OnlyAt(kPrioritySort, Point::kQueueSort));
  plugins.push_back(OnlyAt(kDefaultPreemption, Point::kPostFilter));
  plugins.push_back(OnlyAt(kDefaultBinder, Point::kBind));
  return plugins;
}

const std::vector<KnownPlugin>& KnownPlugins() {
  static const std::vector<KnownPlugin> plugins = CollectPlugins();
  return plugins;
}

const KnownPlugin* FindPlugin(std::string_view name) {
  const auto found = std::ranges::find(KnownPlugins(), name, &KnownPlugin::name);
  return found == KnownPlugins().end() ? nullptr : &*found;
}

const PluginChoice* FindChoice(const std::vector<PluginChoice>& choices, std::string_view name) {
  const auto found = std::ranges::find(choices, name, &PluginChoice::name);
  return found == choices.end() ? nullptr : &*found;
}

bool Disables(const PluginSet& set, std::string_view name) {
  const KnownPlugin* known = FindPlugin(name);
  const bool ours = known != nullptr && known->ours;
  return set.disabled.contains(name) || (!ours && set.disabled.contains("*"));
}

bool Serves(std::string_view name, PartitionedBy partitioned_by) {
  const KnownPlugin* known = FindPlugin(name);
  return known != nullptr && (!known->partitions || partitioned_by == PartitionedBy::kScheduler);
}

// Default plugins with the changes of multiPoint. A configured default plugin keeps its position.
std::vector<PluginChoice> MultiPoint(const PluginSet& given) {
  std::vector<PluginChoice> choices;
  for (const KnownPlugin& known : KnownPlugins()) {
    if (Disables(given, known.name)) continue;
    const PluginChoice* choice = FindChoice(given.enabled, known.name);
    choices.push_back(choice != nullptr ? *choice
                                        : PluginChoice{std::string(known.name), known.weight});
  }
  for (const PluginChoice& choice : given.enabled) {
    if (FindChoice(choices, choice.name) == nullptr) choices.push_back(choice);
  }
  return choices;
}

std::vector<PluginChoice> ResolvePoint(Point point, const PluginSet& given,
                                       const std::vector<PluginChoice>& multi_point) {
  std::set<std::string_view> overridden;
  std::vector<PluginChoice> from_multi_point;
  for (const PluginChoice& choice : multi_point) {
    if (!TakesPart(choice.name, point) || Disables(given, choice.name)) continue;
    if (FindChoice(given.enabled, choice.name) != nullptr) {
      overridden.insert(choice.name);
    } else {
      from_multi_point.push_back(choice);
    }
  }
  std::vector<PluginChoice> choices;
  const auto add_own = [&](bool overriding) {
    for (const PluginChoice& choice : given.enabled) {
      if (overridden.contains(choice.name) == overriding && TakesPart(choice.name, point)) {
        choices.push_back(choice);
      }
    }
  };
  add_own(true);
  std::ranges::move(from_multi_point, std::back_inserter(choices));
  add_own(false);
  for (PluginChoice& choice : choices) choice.weight = std::max(choice.weight, 1);
  return choices;
}

}  // namespace

std::string_view NameOf(Point point) { return kNames[static_cast<size_t>(point)]; }

bool EnabledPlugins::Has(Point point, std::string_view plugin) const {
  return FindChoice(At(point), plugin) != nullptr;
}

bool IsPlugin(std::string_view name) { return FindPlugin(name) != nullptr; }

std::vector<std::string_view> OwnPlugins() {
  std::vector<std::string_view> own;
  for (const KnownPlugin& known : KnownPlugins()) {
    if (known.ours) own.push_back(known.name);
  }
  return own;
}

bool TakesPart(std::string_view plugin, Point point) {
  const KnownPlugin* known = FindPlugin(plugin);
  return known != nullptr && known->takes_part[static_cast<size_t>(point)];
}

EnabledPlugins ResolveProfile(const PluginSets& sets, PartitionedBy partitioned_by) {
  const std::vector<PluginChoice> multi_point = MultiPoint(sets.multi_point);
  EnabledPlugins enabled;
  for (size_t i = 0; i < kPoints; ++i) {
    const auto point = static_cast<Point>(i);
    enabled.At(point) = ResolvePoint(point, sets.At(point), multi_point);
    std::erase_if(enabled.At(point),
                  [&](const PluginChoice& choice) { return !Serves(choice.name, partitioned_by); });
  }
  return enabled;
}

void Remove(std::string_view plugin, EnabledPlugins& enabled) {
  for (std::vector<PluginChoice>& point : enabled.points) {
    std::erase_if(point, [&](const PluginChoice& choice) { return choice.name == plugin; });
  }
}

EnabledPlugins WithPartitioning(EnabledPlugins enabled) {
  for (const KnownPlugin& known : KnownPlugins()) {
    if (!known.partitions) continue;
    for (size_t i = 0; i < kPoints; ++i) {
      const auto point = static_cast<Point>(i);
      if (!known.takes_part[i] || enabled.Has(point, known.name)) continue;
      enabled.At(point).push_back({std::string(known.name), 1});
    }
  }
  return enabled;
}

}  // namespace nos::scheduling
