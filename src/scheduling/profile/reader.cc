#include "scheduling/profile/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "scheduling/framework.h"
#include "scheduling/profile/arguments.h"
#include "scheduling/registry.h"

namespace nos::scheduling {
namespace {

// Scheduler name in the Helm chart and in the Go implementation of nos.
constexpr std::string_view kOurName = "nos-scheduler";
constexpr std::string_view kDynamicResources = "DynamicResources";

class Reader {
 public:
  Reader(const ConfigValue& from, const ConfigurationUse& use, std::vector<std::string>& notes)
      : from_(from), use_(use), notes_(notes) {}

  Profile Read() {
    std::string name;
    ReadMembers(name);
    PluginSets sets;
    ReadPlugins(from_.Get("plugins"), sets);
    EnabledPlugins enabled = ResolveProfile(sets, use_.partitioned_by);
    const bool keeps_quotas = Names(sets, kCapacityScheduling);
    // Other schedulers have no quotas unless their configuration enables them.
    const std::string_view called = name.empty() ? use_.default_name : name;
    if (use_.simulates && called != kOurName && !keeps_quotas) Remove(kCapacityScheduling, enabled);
    // A profile that disables DefaultPreemption wants no evictions: quotas evict only if it names
    // CapacityScheduling.
    if (!keeps_quotas && !enabled.Has(Point::kPostFilter, kDefaultPreemption)) {
      std::erase_if(enabled.At(Point::kPostFilter),
                    [](const PluginChoice& choice) { return choice.name == kCapacityScheduling; });
    }
    // Programs that simulate other schedulers do not read ResourceSlices.
    if (use_.simulates && name != kOurName) Remove(kDynamicResources, enabled);
    CheckEnabled(enabled);
    ReadArguments(from_.Get("pluginConfig"));
    const PreemptionOptions preemption = ReadPreemptionArguments(ArgumentsOf(kDefaultPreemption));
    Profile profile{std::move(name),
                    std::make_shared<Framework>(MakeFramework(enabled)),
                    {},
                    std::move(enabled),
                    {}};
    profile.reclaims = profile.enabled.Has(Point::kPostFilter, kCapacityScheduling);
    // Profiles of the Go implementation of nos list only CapacityScheduling here, which then
    // preempts for all pods.
    if (profile.reclaims || profile.enabled.Has(Point::kPostFilter, kDefaultPreemption)) {
      profile.preemption = preemption;
    }
    if (profile.framework->partitioned_by() == PartitionedBy::kPartitioner) {
      profile.with_partitioning =
          std::make_shared<Framework>(MakeFramework(WithPartitioning(profile.enabled)));
    }
    for (const auto& [plugin, value] : arguments_) {
      if (value.Present()) profile.arguments[plugin] = value.json();
    }
    return profile;
  }

 private:
  // True if the configuration itself enables the plugin.
  static bool Names(const PluginSets& sets, std::string_view plugin) {
    const auto enables = [&](const PluginSet& set) {
      return std::ranges::find(set.enabled, plugin, &PluginChoice::name) != set.enabled.end();
    };
    return enables(sets.multi_point) || std::ranges::any_of(sets.points, enables);
  }

  void ReadMembers(std::string& name) {
    const auto known = [](const ConfigValue&) {};
    from_.Members(At("schedulerName", name),
                  At("percentageOfNodesToScore",
                     [&](const ConfigValue& value) { ReadPercentage(value, notes_); }),
                  At("plugins", known), At("pluginConfig", known));
  }

  void ReadPlugins(const ConfigValue& plugins, PluginSets& sets) {
    const auto at = [&](Point point) {
      return At(NameOf(point), [this, &sets, point](const ConfigValue& value) {
        ReadSet(value, point, sets.At(point));
      });
    };
    plugins.Members(
        At("multiPoint",
           [&](const ConfigValue& value) { ReadSet(value, std::nullopt, sets.multi_point); }),
        at(Point::kPreEnqueue), at(Point::kQueueSort), at(Point::kPreFilter), at(Point::kFilter),
        at(Point::kPostFilter), at(Point::kPreScore), at(Point::kScore), at(Point::kReserve),
        at(Point::kPermit), at(Point::kPreBind), at(Point::kBind), at(Point::kPostBind));
    if (plugins.Get("preScore").Present()) {
      notes_.push_back(plugins.PathOf("preScore") +
                       " has no effect: every plugin that scores also prepares its scores");
    }
  }

  // Without a point: multiPoint.
  void ReadSet(const ConfigValue& from, std::optional<Point> point, PluginSet& to) {
    const auto read_enabled = [&](const ConfigValue& element) {
      PluginChoice choice;
      element.Members(At("name", choice.name), At("weight", choice.weight));
      Rename(element, choice.name);
      if (choice.weight < 0) element.FailAt(element.PathOf("weight"), "must not be negative");
      if (CheckEnabled(element, point, to, choice.name)) to.enabled.push_back(std::move(choice));
    };
    const auto read_disabled = [&](const ConfigValue& element) {
      std::string name;
      int32_t weight = 0;  // accepted and ignored
      element.Members(At("name", name), At("weight", weight));
      Rename(element, name);
      if (name != "*" && !IsPlugin(name)) {
        Note(element, fmt::format("there is no plugin '{}' to disable", name));
      }
      to.disabled.insert(std::move(name));
    };
    from.Members(At("enabled", [&](const ConfigValue& list) { list.Elements(read_enabled); }),
                 At("disabled", [&](const ConfigValue& list) { list.Elements(read_disabled); }));
  }

  bool CheckEnabled(const ConfigValue& element, std::optional<Point> point, const PluginSet& set,
                    const std::string& name) {
    if (!IsPlugin(name)) return Unknown(element, name), false;
    if (std::ranges::find(set.enabled, name, &PluginChoice::name) != set.enabled.end()) {
      element.FailAt(element.PathOf("name"), fmt::format("'{}' is enabled twice", name));
      return false;
    }
    if (point && !TakesPart(name, *point)) {
      Note(element, fmt::format("{} does nothing at {}", name, NameOf(*point)));
    }
    return true;
  }

  // Replaces a deprecated name of a plugin by the current one.
  void Rename(const ConfigValue& element, std::string& name) {
    const auto& known = RegisteredPlugins();
    const auto found = std::ranges::find(known, name, &RegisteredPlugin::deprecated_name);
    if (name.empty() || found == known.end()) return;
    Note(element, fmt::format("{} is deprecated: use {}", name, found->name));
    name = found->name;
  }

  void Unknown(const ConfigValue& element, const std::string& name) {
    if (use_.simulates && !name.empty()) {
      return Note(element, fmt::format("plugin '{}' is not simulated", name));
    }
    element.FailAt(element.PathOf("name"),
                   fmt::format("there is no plugin '{}', there are those of kube-scheduler, "
                               "CapacityScheduling, GpuPacking and GpuPartitioning",
                               name));
  }

  void Note(const ConfigValue& at, const std::string& what) {
    notes_.push_back(fmt::format("{}: {}", at.path(), what));
  }

  // The queue order and the binding cannot be replaced.
  void CheckEnabled(const EnabledPlugins& enabled) {
    const auto require = [&](Point point, std::string_view plugin) {
      if (use_.simulates || enabled.Has(point, plugin)) return;
      from_.FailAt(from_.PathOf("plugins." + std::string(NameOf(point))),
                   fmt::format("must have {}: there is no other here", plugin));
    };
    require(Point::kQueueSort, kPrioritySort);
    require(Point::kBind, kDefaultBinder);
  }

  void ReadArguments(const ConfigValue& list) {
    list.Elements([&](const ConfigValue& element) {
      std::string name;
      element.Members(At("name", name), At("args", [](const ConfigValue&) {}));
      Rename(element, name);
      const ConfigValue args = element.Get("args");
      if (!IsPlugin(name)) return Unknown(element, name);
      if (!arguments_.emplace(name, args).second) {
        return element.FailAt(element.PathOf("name"), fmt::format("'{}' is given twice", name));
      }
      if (args.Present() && !TakesArguments(name)) {
        Note(element, fmt::format("{} takes no arguments here", name));
      }
    });
  }

  static bool TakesArguments(std::string_view name) {
    const auto& known = RegisteredPlugins();
    return name == kDefaultPreemption ||
           std::ranges::any_of(known, [&](const RegisteredPlugin& plugin) {
             return plugin.name == name && plugin.takes_args;
           });
  }

  ConfigValue ArgumentsOf(std::string_view plugin) const {
    const auto found = arguments_.find(plugin);
    return found != arguments_.end() ? found->second : from_.Nothing();
  }

  Framework MakeFramework(const EnabledPlugins& enabled) const {
    const ProfileTraits traits{.packs_gpus = enabled.Has(Point::kScore, "GpuPacking"),
                               .partitions_gpus = enabled.Has(Point::kFilter, "GpuPartitioning")};
    std::vector<std::unique_ptr<const Plugin>> plugins;
    std::map<std::string_view, const Plugin*> by_name;
    for (const RegisteredPlugin& registered : RegisteredPlugins()) {
      plugins.push_back(registered.make(ArgumentsOf(registered.name), traits));
      by_name[registered.name] = plugins.back().get();
    }
    Framework::Points points;
    const auto fill = [&](Point point, auto& list) {
      using Part = std::remove_cvref_t<decltype(*list.front())>;
      for (const PluginChoice& choice : enabled.At(point)) {
        list.push_back(dynamic_cast<const Part*>(by_name.at(choice.name)));
      }
    };
    fill(Point::kPreEnqueue, points.gates);
    fill(Point::kPreFilter, points.pre_filters);
    fill(Point::kFilter, points.filters);
    fill(Point::kReserve, points.reservers);
    fill(Point::kPreBind, points.pre_binders);
    for (const PluginChoice& choice : enabled.At(Point::kScore)) {
      points.scorers.push_back(
          {dynamic_cast<const ScorePlugin*>(by_name.at(choice.name)), choice.weight});
    }
    return {std::move(plugins), std::move(points)};
  }

  const ConfigValue& from_;
  const ConfigurationUse& use_;
  std::vector<std::string>& notes_;
  std::map<std::string, ConfigValue, std::less<>> arguments_;
};

}  // namespace

Profile ReadProfile(const ConfigValue& from, const ConfigurationUse& use,
                    std::vector<std::string>& notes) {
  return Reader(from, use, notes).Read();
}

void ReadPercentage(const ConfigValue& from, std::vector<std::string>& notes) {
  if (!from.Present()) return;
  int32_t percentage = 0;
  from.Read(percentage);
  if (percentage < 0 || percentage > 100) {
    return from.Fail(fmt::format("must be from 0 to 100, not {}", percentage));
  }
  notes.push_back(from.path() + " has no effect: every node is looked at");
}

}  // namespace nos::scheduling
