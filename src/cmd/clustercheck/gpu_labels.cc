// Labels that GPU feature discovery writes, from which nos knows the GPUs of a node before its
// agent reports. Source: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

constexpr int64_t kOldestDriver = 525;  // docs/install.md

// The driver's major version; the second label is of discovery before 0.14.
std::string DriverLabel(const NodeFacts& node) {
  const std::string major = node.Label("nvidia.com/cuda.driver-version.major");
  return major.empty() ? node.Label("nvidia.com/cuda.driver.major") : major;
}

void CheckDrivers(const std::vector<const NodeFacts*>& labelled, Findings& findings) {
  std::vector<std::string> old, unknown;
  std::map<std::string, size_t> majors;
  for (const NodeFacts* node : labelled) {
    const std::string major = DriverLabel(*node);
    const auto number = ParseInt(major);
    if (!number) {
      unknown.push_back(node->name);
      continue;
    }
    ++majors[major];
    if (*number < kOldestDriver) old.push_back(fmt::format("{} ({})", node->name, major));
  }
  if (!old.empty()) {
    return findings.Fail("DriverVersion", fmt::format("drivers older than {}", kOldestDriver),
                         "install a newer driver", old);
  }
  if (majors.empty()) {
    return findings.NotChecked("DriverVersion",
                               "no labelled node has a label with the driver's version",
                               "nos check --node on the node, or install GPU feature discovery");
  }
  if (majors.size() > 1) {
    std::vector<std::string> each;
    for (const auto& [major, count] : majors)
      each.push_back(fmt::format("{} on {}", major, Count(count, "node")));
    return findings.Warn("DriverVersion", "labelled nodes have different drivers",
                         "profiles of a GPU can differ between drivers; use one", each);
  }
  findings.Ok("DriverVersion", fmt::format("driver {} on {}{}", majors.begin()->first,
                                           Count(majors.begin()->second, "node"),
                                           unknown.empty() ? "" : "; others have no label"));
}

bool Partitions(const NodeFacts& node) { return node.Mode() == "mig"; }

}  // namespace

void CheckGpuLabels(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("GPUs by their labels");
  if (!snapshot.nodes.status.ok()) {
    return findings.Unread("GpuProduct", "nodes", snapshot.nodes.status);
  }
  std::vector<const NodeFacts*> labelled;
  for (const NodeFacts& node : snapshot.nodes.items) {
    if (node.Labelled()) labelled.push_back(&node);
  }
  if (labelled.empty()) return findings.NotChecked("GpuProduct", "no node is labelled");
  std::vector<std::string> missing, strange, not_capable, single;
  for (const NodeFacts* node : labelled) {
    const std::string product = node->Label(cluster::kProductLabel);
    if (product.empty() || node->Label(cluster::kCountLabel).empty()) missing.push_back(node->name);
    const bool known = product.empty() || snapshot.catalogue->FindByProduct(product) != nullptr;
    if (!known && Partitions(*node)) strange.push_back(fmt::format("{} ({})", node->name, product));
    if (node->Label("nvidia.com/mig.capable") == "false" && Partitions(*node)) {
      not_capable.push_back(node->name);
    }
    if (node->Label("nvidia.com/mig.strategy") == "single" && Partitions(*node)) {
      single.push_back(node->name);
    }
  }
  findings.WarnIfAny("GpuLabels", missing,
                     "labelled nodes lack nvidia.com/gpu.product or nvidia.com/gpu.count",
                     "install GPU feature discovery, or set both by hand: docs/install.md",
                     "product and count of every labelled node are known");
  findings.WarnIfAny("GpuProduct", strange, "GPU products that the catalogue does not have",
                     "add the model: docs/catalogue.md", "the catalogue has every product");
  findings.FailIfAny("MigCapable", not_capable, "nodes labelled mig have GPUs without MIG",
                     "label them mps (with migAgent.mps.enabled), or remove the label",
                     "no node labelled mig says that its GPUs lack MIG");
  // Source: the README of GPU feature discovery, "MIG 'single' strategy".
  findings.FailIfAny("MigStrategy", single,
                     "MIG strategy single: once a GPU is partitioned, the labels that nos reads "
                     "(product, count) are those of its instances",
                     "set mig.strategy=mixed in the GPU Operator",
                     "no node that nos partitions has MIG strategy single");
  CheckDrivers(labelled, findings);
}

}  // namespace nos::cmd
