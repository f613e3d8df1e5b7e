#include "scheduling/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduling/plugins/registry.h"

namespace nos::scheduling {
namespace {

constexpr std::string_view kGroup = "kubescheduler.config.k8s.io/";

struct Choice {
  bool filters = true;
  int weight = 0;
};
using Choices = std::map<std::string, Choice, std::less<>>;

// The objects of the list at `keys`; what is no object is left out.
template <typename... Keys>
std::vector<const Json*> Objects(const Json& value, const Keys&... keys) {
  std::vector<const Json*> objects;
  const Json* list = Find(value, keys...);
  if (list == nullptr || !list->is_array()) return objects;
  for (const Json& item : list->get_array()) {
    if (item.is_object()) objects.push_back(&item);
  }
  return objects;
}

Choices Defaults() {
  Choices choices;
  for (const RegisteredPlugin& plugin : RegisteredPlugins()) {
    choices[std::string(plugin.name)] = {true, plugin.weight};
  }
  return choices;
}

// What one extension point says; multiPoint stands for both others.
class Point {
 public:
  Point(std::string name, bool filters, bool scores)
      : name_(std::move(name)), filters_(filters), scores_(scores) {}

  void Apply(const Json& profile, Choices& choices, std::vector<std::string>& notes) const {
    for (const Json* plugin : Objects(profile, "plugins", name_, "disabled")) {
      Disable(FindString(*plugin, "name"), choices);
    }
    for (const Json* plugin : Objects(profile, "plugins", name_, "enabled")) {
      Enable(*plugin, choices, notes);
    }
  }

 private:
  // GpuPacking is not kube-scheduler's: "*" does not mean it.
  void Disable(std::string_view name, Choices& choices) const {
    for (auto& [known, choice] : choices) {
      if (known != name && (name != "*" || known == "GpuPacking")) continue;
      if (filters_) choice.filters = false;
      if (scores_) choice.weight = 0;
    }
  }
  void Enable(const Json& plugin, Choices& choices, std::vector<std::string>& notes) const {
    const std::string_view name = FindString(plugin, "name");
    const auto choice = choices.find(name);
    if (choice == choices.end()) {
      notes.push_back(fmt::format("plugin '{}' is not simulated", name));
      return;
    }
    const Json* weight = Find(plugin, "weight");
    const int given = weight != nullptr && weight->is_int64()
                          ? static_cast<int>(std::clamp<int64_t>(weight->get_int64(), 0, 1000))
                          : 0;
    if (filters_) choice->second.filters = true;
    // No weight, or 0, is the default.
    if (scores_) choice->second.weight = given != 0 ? given : DefaultWeight(name);
  }
  static int DefaultWeight(std::string_view name) { return Defaults().find(name)->second.weight; }

  std::string name_;
  bool filters_, scores_;
};

Result<const Json*> ChooseProfile(const Json& config, std::string_view scheduler_name) {
  static const Json nothing = JsonObject();
  const std::vector<const Json*> profiles = Objects(config, "profiles");
  if (profiles.empty()) return &nothing;
  if (scheduler_name.empty()) return profiles.front();
  for (const Json* profile : profiles) {
    if (FindString(*profile, "schedulerName") == scheduler_name) return profile;
  }
  return Invalid(fmt::format("there is no profile with schedulerName '{}'", scheduler_name));
}

}  // namespace

Result<Framework> ReadProfile(const Json& config, std::string_view scheduler_name,
                              std::vector<std::string>& notes) {
  const std::string_view version = FindString(config, "apiVersion");
  if (!version.starts_with(kGroup) || FindString(config, "kind") != "KubeSchedulerConfiguration") {
    return Invalid(
        fmt::format("expected kind KubeSchedulerConfiguration of {}v1, found '{}' of '{}'", kGroup,
                    FindString(config, "kind"), version));
  }
  NOS_ASSIGN(const Json* profile, ChooseProfile(config, scheduler_name));
  Choices choices = Defaults();
  Point("multiPoint", true, true).Apply(*profile, choices, notes);
  Point("filter", true, false).Apply(*profile, choices, notes);
  Point("score", false, true).Apply(*profile, choices, notes);
  for (const Json* arguments : Objects(*profile, "pluginConfig")) {
    notes.push_back(
        fmt::format("pluginConfig of '{}' is not simulated", FindString(*arguments, "name")));
  }
  std::vector<Framework::Entry> entries;
  for (const RegisteredPlugin& registered : RegisteredPlugins()) {
    std::vector<std::string> problems;
    auto plugin = registered.make(ConfigValue(nullptr, "", problems), {.packs_gpus = true});
    const Choice choice = choices[plugin->Name()];
    entries.push_back({std::move(plugin), choice.weight, choice.filters});
  }
  return Framework(std::move(entries));
}

}  // namespace nos::scheduling
