// Objects of resource.k8s.io, one a line: refused as invalid, or usable up to an allocation that
// ends.
#include <memory>
#include <string>
#include <vector>

#include "dra/allocator.h"
#include "dra/result.h"
#include "dra/testing/table_expressions.h"
#include "target.h"

using namespace nos;       // NOLINT
using namespace nos::dra;  // NOLINT

namespace {

template <typename T>
std::shared_ptr<const T> Read(std::string_view text, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  const Status status = read(text, *object);
  Require(status.ok() || status.code() == Code::kInvalid, "refused as invalid");
  return status.ok() ? object : nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = FuzzText(data, size);
  const TableExpressions expressions;
  Inventory inventory(Features::Of(37), expressions);
  std::vector<std::shared_ptr<const ResourceClaim>> claims;
  std::vector<std::shared_ptr<const DeviceClass>> classes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view json = line.substr(std::min<size_t>(line.size(), 1));
    switch (line.empty() ? ' ' : line.front()) {
      case 's':
        if (auto slice = Read<ResourceSlice>(json, ReadResourceSlice)) inventory.PutSlice(slice);
        break;
      case 'k':
        if (auto found = Read<DeviceClass>(json, ReadDeviceClass)) classes.push_back(found);
        break;
      case 't':
        if (auto rule = Read<DeviceTaintRule>(json, ReadDeviceTaintRule)) {
          inventory.SetTaintRules({*rule});
        }
        break;
      case 'c':
        if (auto claim = Read<ResourceClaim>(json, ReadResourceClaim)) {
          if (claim->allocation) inventory.Allocate(claim->uid, *claim->allocation);
          claims.push_back(claim);
        }
        break;
      default:
        break;
    }
  }
  cluster::Node node;
  node.meta.name = "n1";
  const PreparedClaims prepared(
      claims,
      [&](const std::string& name) -> std::shared_ptr<const DeviceClass> {
        for (const auto& found : classes) {
          if (found->name == name) return found;
        }
        return nullptr;
      },
      inventory.features());
  AllocationOptions options;
  options.max_steps = 2000;
  const AllocationOutcome outcome = Allocate(inventory, prepared, node, options);
  Require(outcome.steps < 1'000'000, "the search ends");
  for (const Allocation& allocation : outcome.allocations) {
    Require(allocation.devices.size() <= 32, "at most 32 devices");
    ResourceClaim again;
    const Json claim = {{"metadata", {{"name", "c"}}},
                        {"status", {{"allocation", WriteAllocation(allocation)}}}};
    Require(ReadResourceClaim(claim, again).ok(), "an allocation can be read back");
  }
  return 0;
}
