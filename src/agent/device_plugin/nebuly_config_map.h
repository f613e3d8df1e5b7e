// The ConfigMap with the configurations of Nebuly's device plugin: one key per configuration, and a
// label on each node that names its key. Only keys and label of this node are written, so that
// concurrent writers for other nodes lose nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kube/client.h"

namespace nos::agent {

// The plugin reads the key of the ConfigMap that this label of its node names.
inline constexpr std::string_view kNebulyLabel = "nvidia.com/device-plugin.config";

struct NebulyConfigMapOptions {
  std::string node{};
  // Defaults of the Helm charts of the Go version of nos and of its plugin.
  std::string name = "nos-device-plugin-configs", ns = "nebuly-nvidia";
};

class NebulyConfigMap {
 public:
  // The transport must outlive this.
  NebulyConfigMap(NebulyConfigMapOptions options, kube::Transport& transport)
      : options_(std::move(options)), client_(transport) {}

  const NebulyConfigMapOptions& options() const { return options_; }
  // "nebuly-nvidia/nos-device-plugin-configs".
  std::string Name() const { return options_.ns + "/" + options_.name; }

  // All texts by key. Error: kNotFound if the ConfigMap does not exist; the plugin's chart creates
  // it.
  Result<std::map<std::string, std::string>> Read();
  Status Put(const std::string& key, const std::string& text);
  Status Remove(const std::set<std::string>& keys);

  struct NodeLabels {
    std::string config{};        // kNebulyLabel; "" if absent
    std::string partitioning{};  // requested partitioning of the node's GPUs, for example "mps"
  };
  Result<NodeLabels> Labels();
  // No value: removes the label.
  Status SetLabel(const std::optional<std::string>& key);

 private:
  Status PatchData(const Json& data);
  Status Explained(const Status& error) const;

  const NebulyConfigMapOptions options_;
  kube::Client client_;
};

}  // namespace nos::agent
