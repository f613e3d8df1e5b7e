#include "scheduling/reasons.h"

#include <fmt/core.h>

#include "base/quantity.h"
#include "base/text.h"

namespace nos::scheduling {
namespace {

// Callers may cap amounts at 2^60 and subtract from them.
constexpr int64_t kCapped = int64_t{1} << 59;

// Larger gangs get no count in the message: each new member would rewrite the conditions of all.
constexpr size_t kMaxCounted = 100;

}  // namespace

std::string AmountText(const std::string& resource, int64_t amount) {
  const bool cpu = resource == "cpu";
  if (amount > kCapped) return fmt::format("more than {} {}", cpu ? "512Ti" : "512Pi", resource);
  const Quantity quantity = cpu ? Quantity::FromMilli(amount) : Quantity::FromValue(amount);
  return fmt::format("{} {}", quantity.ToBinaryString(), resource);
}

Reason Insufficient(cluster::ResourceId id) {
  if (id == cluster::kPods) return {codes::kTooManyPods, "Too many pods"};
  return Insufficient(cluster::ResourceName(id));
}

Reason Insufficient(const std::string& resource) {
  return {codes::kInsufficientResource, "Insufficient " + resource};
}

Reason NodeNotFound(std::string_view node) {
  return {codes::kNodeNotFound, fmt::format("node \"{}\" is gone", node)};
}

std::string ProfileText(const std::string& resource) {
  const std::string prefix(cluster::kMigResourcePrefix);
  return resource.starts_with(prefix) ? resource.substr(prefix.size()) : resource;
}

bool CanBePartitionedInto(const gpu::Model& model, const std::string& resource) {
  const auto profile = model.FindProfile(resource);
  return profile && model.Allows(*profile);
}

std::string NotPartitionable(std::string_view subject, const std::string& resource) {
  return fmt::format("{} be partitioned into {}", subject, ProfileText(resource));
}

Reason SchedulingGated(const cluster::Pod& pod) {
  return {codes::kSchedulingGated,
          fmt::format("waiting for scheduling gates: [{}]", Join(pod.scheduling_gates, " "))};
}

Reason SeveralShares() {
  return {codes::kSeveralShares,
          "asks for several MPS shares in one container, whose programs reach one GPU, or one MIG "
          "instance, only: ask for one larger share, or for one in each of several containers"};
}

Reason GangIncomplete(const std::string& gang, size_t existing, size_t least) {
  const std::string count = least > kMaxCounted ? fmt::format("fewer than the {}", least)
                                                : fmt::format("{} of the {}", existing, least);
  return {codes::kGangIncomplete,
          fmt::format("{}: {} pods that are placed together are there", gang, count)};
}

Reason GangNotWhole(const std::string& gang, size_t placed, size_t least) {
  return {codes::kGangNotWhole,
          fmt::format("{}: {} of its pods find a node together, and {} must", gang, placed, least)};
}

}  // namespace nos::scheduling
