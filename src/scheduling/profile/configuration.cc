#include "scheduling/configuration.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/names.h"
#include "base/text.h"
#include "scheduling/framework.h"
#include "scheduling/framework/config_value.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"
#include "scheduling/profile/reader.h"

namespace nos::scheduling {
namespace {

constexpr std::string_view kVersion = "kubescheduler.config.k8s.io/v1";
constexpr std::string_view kFormerVersion = "kubescheduler.config.k8s.io/v1beta3";
constexpr std::string_view kKind = "KubeSchedulerConfiguration";

void ReadSeconds(const ConfigValue& from, Duration& to) {
  int64_t seconds = -1;
  from.Read(seconds);
  if (!from.Present()) return;
  if (seconds < 1) return from.Fail("must be a whole number of seconds, at least 1");
  to = SecondsAtMost(seconds);
}

// Reads a value whose empty form selects the default.
template <typename T>
auto AtUnlessEmpty(std::string_view key, T& to) {
  return At(key, [&to](const ConfigValue& value) {
    T given{};
    value.Read(given);
    if (given != T{}) to = std::move(given);
  });
}

void ReadClient(const ConfigValue& from, Configuration& to) {
  const auto ignored = [&](const ConfigValue& value) {
    if (value.Present()) to.notes.push_back(value.path() + " has no effect: JSON is used");
  };
  from.Members(At("kubeconfig", to.client.kubeconfig), At("acceptContentTypes", ignored),
               At("contentType", ignored), AtUnlessEmpty("qps", to.client.requests_per_second),
               AtUnlessEmpty("burst", to.client.burst));
  if (!std::isfinite(to.client.requests_per_second)) {
    from.FailAt(from.PathOf("qps"), "must be finite");
  }
  if (to.client.burst < 0) from.FailAt(from.PathOf("burst"), "must not be negative");
}

void ReadLeaderElection(const ConfigValue& from, Configuration::LeaderElection& to) {
  std::string lock = "leases";
  from.Members(At("leaderElect", to.elect), AtUnlessEmpty("resourceLock", lock),
               AtUnlessEmpty("resourceName", to.name), At("resourceNamespace", to.ns),
               AtUnlessEmpty("leaseDuration", to.lease), AtUnlessEmpty("renewDeadline", to.renew),
               AtUnlessEmpty("retryPeriod", to.retry));
  if (!to.elect) return;  // the other fields are unused
  if (lock != "leases") {
    from.FailAt(from.PathOf("resourceLock"), fmt::format("must be leases, not '{}'", lock));
  }
  if (!IsDnsSubdomain(to.name)) {
    from.FailAt(from.PathOf("resourceName"),
                fmt::format("must be the name of a Lease, not '{}'", to.name));
  }
  if (!to.ns.empty() && !IsDnsLabel(to.ns)) {
    from.FailAt(from.PathOf("resourceNamespace"),
                fmt::format("must be the name of a namespace, not '{}'", to.ns));
  }
  if (to.retry < Duration::zero()) {
    from.FailAt(from.PathOf("retryPeriod"), "must be more than nothing");
  }
  if (to.renew >= to.lease) {
    from.FailAt(from.PathOf("renewDeadline"), "must be shorter than leaseDuration");
  }
  if (to.retry >= to.renew) {
    from.FailAt(from.PathOf("retryPeriod"), "must be shorter than renewDeadline");
  }
}

void CheckHead(const ConfigValue& root) {
  std::string version, kind;
  root.Get("apiVersion").Read(version);
  root.Get("kind").Read(kind);
  // All fields read here have the same meaning in the previous version.
  if ((version == kVersion || version == kFormerVersion) && kind == kKind) return;
  root.Fail(fmt::format("expected apiVersion {} and kind {}, found '{}' and '{}'", kVersion, kKind,
                        version, kind));
}

void ReadExtenders(const ConfigValue& from, const ConfigurationUse& use, Configuration& to) {
  if (!from.Present()) return;
  bool any = false;
  from.Elements([&](const ConfigValue&) { any = true; });
  if (!any) return;
  if (use.simulates) {
    to.notes.push_back(from.path() + " are not simulated");
  } else {
    from.Fail("nos calls no extenders: remove them");
  }
}

// kube-scheduler names a single profile without a name default-scheduler. nos requires a name:
// serving default-scheduler by omission would race with kube-scheduler for its pods.
void NameProfiles(const ConfigValue& from, const ConfigurationUse& use, Configuration& to) {
  std::map<std::string_view, size_t> seen;
  if (use.simulates && to.profiles.size() == 1 && to.profiles.front().scheduler_name.empty()) {
    to.profiles.front().scheduler_name = use.default_name;
  }
  for (size_t i = 0; i < to.profiles.size(); ++i) {
    const std::string& name = to.profiles[i].scheduler_name;
    const std::string path = from.PathOf(i) + ".schedulerName";
    if (name.empty()) {
      from.FailAt(path,
                  "is missing: by it pods ask for the profile (nos-scheduler, say; "
                  "default-scheduler only in the place of kube-scheduler)");
      continue;
    }
    const auto [first, fresh] = seen.emplace(name, i);
    if (!fresh) {
      from.FailAt(path,
                  fmt::format("'{}' is the name of {} already", name, from.PathOf(first->second)));
    }
  }
}

void ReadProfiles(const ConfigValue& from, const ConfigurationUse& use, Configuration& to) {
  from.Elements([&](const ConfigValue& element) {
    to.profiles.push_back(ReadProfile(element, use, to.notes));
  });
}

// All profiles must have the same value, because they share one ledger and one set of evictions.
template <typename ValueOf>
void CheckEqual(const ConfigValue& from, const Configuration& configuration, std::string_view field,
                ValueOf value_of) {
  std::optional<int64_t> first;
  for (size_t i = 0; i < configuration.profiles.size(); ++i) {
    const auto* quotas = configuration.profiles[i].framework->quotas();
    if (quotas == nullptr) continue;
    const int64_t value = value_of(quotas->options());
    if (value == first.value_or(value)) {
      first = value;
      continue;
    }
    from.FailAt(
        from.PathOf(i) + ".pluginConfig",
        fmt::format("{} of CapacityScheduling is {} here and {} in another profile: it must "
                    "be the same in all",
                    field, value, first.value_or(value)));
  }
}

void CheckQuotas(const ConfigValue& from, const Configuration& configuration) {
  CheckEqual(from, configuration, "nvidiaGpuResourceMemoryGB",
             [](const QuotaOptions& options) { return options.charges.gpu_memory_gb; });
  CheckEqual(from, configuration, "reclaimMaxGracePeriodSeconds", [](const QuotaOptions& options) {
    return std::chrono::floor<std::chrono::seconds>(options.max_grace).count();
  });
}

void ReadParallelism(const ConfigValue& from) {
  int32_t parallelism = 1;
  from.Read(parallelism);
  if (parallelism < 1) from.Fail("must be at least 1");
}

void ReadRoot(const ConfigValue& root, const ConfigurationUse& use, Configuration& to) {
  const auto without_effect = [&](std::string_view why) {
    return [&to, why](const ConfigValue& value) {
      if (value.Present())
        to.notes.push_back(fmt::format("{} has no effect: {}", value.path(), why));
    };
  };
  const auto known = [](const ConfigValue&) {};
  root.Members(
      At("apiVersion", known), At("kind", known), At("profiles", known),
      At("parallelism", &ReadParallelism),
      At("percentageOfNodesToScore",
         [&](const ConfigValue& value) { ReadPercentage(value, to.notes); }),
      At("podInitialBackoffSeconds",
         [&](const ConfigValue& value) { ReadSeconds(value, to.queue.initial_pause); }),
      At("podMaxBackoffSeconds",
         [&](const ConfigValue& value) { ReadSeconds(value, to.queue.max_pause); }),
      At("clientConnection", [&](const ConfigValue& value) { ReadClient(value, to); }),
      At("leaderElection",
         [&](const ConfigValue& value) { ReadLeaderElection(value, to.leader_election); }),
      At("extenders", [&](const ConfigValue& value) { ReadExtenders(value, use, to); }),
      At("enableProfiling", without_effect("there are no profiling handlers")),
      At("enableContentionProfiling", without_effect("there are no profiling handlers")),
      At("delayCacheUntilActive", without_effect("all replicas keep their caches filled")));
  if (to.queue.max_pause < to.queue.initial_pause) {
    root.FailAt(root.PathOf("podMaxBackoffSeconds"), "must be at least podInitialBackoffSeconds");
  }
  ReadProfiles(root.Get("profiles"), use, to);
  if (to.profiles.empty()) {
    to.profiles.push_back(ReadProfile(root.Nothing(), use, to.notes));
    to.profiles.front().scheduler_name = use.default_name;
  }
  NameProfiles(root.Get("profiles"), use, to);
  CheckQuotas(root.Get("profiles"), to);
}

}  // namespace

Result<Configuration> ReadConfiguration(const Json& config, const ConfigurationUse& use) {
  if (!config.is_object()) return Invalid("expected a mapping");
  std::vector<std::string> problems;
  const ConfigValue root(&config, "", problems);
  CheckHead(root);
  if (!problems.empty()) return Invalid(problems.front());
  Configuration configuration;
  ReadRoot(root, use, configuration);
  if (!problems.empty()) return Invalid(Join(problems, "; "));
  return configuration;
}

Configuration DefaultConfiguration(const ConfigurationUse& use) {
  std::vector<std::string> problems;
  Configuration configuration;
  configuration.profiles.push_back(
      ReadProfile(ConfigValue(nullptr, "", problems), use, configuration.notes));
  configuration.profiles.front().scheduler_name = use.default_name;
  return configuration;
}

Framework Framework::Default(PartitionedBy partitioned_by) {
  return std::move(
      *DefaultConfiguration({.partitioned_by = partitioned_by}).profiles.front().framework);
}

}  // namespace nos::scheduling
