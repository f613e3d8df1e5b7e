// Where Nebuly's device plugin has its configurations: a ConfigMap with a key for each, and a label
// on each node that names its own. Only what is this node's is written; who else writes there at
// the same time loses nothing.
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
  // As the charts of the Go project and of its plugin had it.
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

  // All texts by key. Error: kNotFound: there is no such ConfigMap, which the plugin's chart makes.
  Result<std::map<std::string, std::string>> Read();
  Status Put(const std::string& key, const std::string& text);
  Status Remove(const std::set<std::string>& keys);

  struct NodeLabels {
    std::string config{};        // kNebulyLabel; "": none
    std::string partitioning{};  // "mps", or how else its GPUs are to be divided
  };
  Result<NodeLabels> Labels();
  // Nothing: takes the label away.
  Status SetLabel(const std::optional<std::string>& key);

 private:
  Status PatchData(const Json& data);
  Status Explained(const Status& error) const;

  const NebulyConfigMapOptions options_;
  kube::Client client_;
};

}  // namespace nos::agent
