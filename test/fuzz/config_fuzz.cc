// Kubeconfigs and label selectors from users: refused as invalid, or usable. The first byte chooses
// the kind.
#include "cluster/selectors.h"
#include "kube/connection.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text = FuzzText(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto config = kube::ParseKubeconfig(text, "", "/");
    if (!config.ok()) {
      Require(config.status().code() == Code::kInvalid, "refused as invalid");
    } else {
      Require(!config->server.empty() && !config->server.ends_with('/'), "there is a server");
    }
    return 0;
  }
  const auto selector = cluster::ParseLabelSelector(text);
  if (!selector.ok()) {
    Require(selector.status().code() == Code::kInvalid, "refused as invalid");
    return 0;
  }
  (void)cluster::Matches(*selector, {{"app", "web"}, {"cores", "8"}, {"gpu", ""}});
  return 0;
}
