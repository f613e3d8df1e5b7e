#include "dra/objects/read_parts.h"

#include <algorithm>

#include "cluster/read_parts.h"

namespace nos::dra {
namespace {

using cluster::At;
using cluster::Field;

template <typename T>
void Sort(std::vector<std::pair<Name, T>>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

void ReadName(Field& from, Name& to) {
  std::string text;
  from.Read(text);
  to = Name(text);
}

void ReadAmounts(Field& from, Amounts& to) {
  to.clear();
  from.Entries([&](std::string_view key, Field& value) {
    value.Read(to.emplace_back(Name(key), Quantity()).second);
  });
  Sort(to);
}

void ReadCounters(Field& from, Amounts& to) {
  to.clear();
  from.Entries([&](std::string_view key, Field& value) {
    value.Members(At("value", to.emplace_back(Name(key), Quantity()).second));
  });
  Sort(to);
}

void ReadOptional(Field& from, std::optional<Quantity>& to) {
  if (from.Present()) from.Read(to.emplace());
}

void ReadOptional(Field& from, std::optional<bool>& to) {
  if (from.Present()) from.Read(to.emplace());
}

void ReadOptional(Field& from, std::optional<int64_t>& to) {
  if (from.Present()) from.Read(to.emplace());
}

void ReadOptional(Field& from, std::optional<std::string>& to) {
  if (from.Present()) from.Read(to.emplace());
}

void ReadTaint(Field& from, DeviceTaint& to) {
  from.Members(At("key", to.key), At("value", to.value), At("effect", to.effect),
               At("timeAdded", to.added));
}

void ReadToleration(Field& from, DeviceToleration& to) {
  from.Members(At("key", to.key), At("operator", to.op), At("value", to.value),
               At("effect", to.effect),
               At("tolerationSeconds", [&](Field& field) { ReadOptional(field, to.seconds); }));
}

void ReadSelector(Field& from, std::optional<std::string>& to) {
  from.Members(At("cel", [&](Field& cel) {
    if (cel.Present()) cel.Members(At("expression", to.emplace()));
  }));
}

void ReadOpaque(Field& from, std::optional<OpaqueConfig>& to) {
  if (!from.Present()) return;
  OpaqueConfig& opaque = to.emplace();
  from.Members(At("driver", opaque.driver), At("parameters", [&](Field& parameters) {
                 parameters.ReadRaw(opaque.parameters);
                 // A value that is skipped has not been checked yet.
                 const Result<Json> tree = ParseJson(opaque.parameters);
                 if (parameters.Present() && !tree.ok()) parameters.Fail(tree.status().message());
               }));
}

void ReadAllocation(Field& from, Allocation& to) {
  const auto read_device = [](Field& result, AllocatedDevice& device) {
    result.Members(
        At("request", device.request), At("driver", device.driver, ReadName),
        At("pool", device.pool, ReadName), At("device", device.device, ReadName),
        At("adminAccess", [&](Field& field) { ReadOptional(field, device.admin_access); }),
        At("tolerations", device.tolerations, ReadToleration),
        At("bindingConditions", device.binding_conditions),
        At("bindingFailureConditions", device.binding_failure_conditions),
        At("shareID", device.share_id), AtAmounts("consumedCapacity", device.consumed_capacity),
        At("skipNodeOperations", device.skip_node_operations));
  };
  const auto read_config = [](Field& entry, AllocatedConfig& config) {
    entry.Members(At("source", config.source), At("requests", config.requests),
                  At("opaque", [&](Field& opaque) { ReadOpaque(opaque, config.opaque); }));
  };
  from.Members(At("devices",
                  [&](Field& devices) {
                    devices.Members(At("results", to.devices, read_device),
                                    At("config", to.config, read_config));
                  }),
               At("nodeSelector", to.node_selector, cluster::ReadTerms),
               At("allocationTimestamp", to.time));
}

}  // namespace nos::dra
