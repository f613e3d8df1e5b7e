// Configurations of Nebuly's device plugin, and keys of its ConfigMap, which other users can write:
// refused as invalid, or shares that survive a round trip.
#include "agent/nebuly_config.h"
#include "target.h"

using namespace nos;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = FuzzText(data, size);
  const std::map<int64_t, std::string> gpus = {{0, "GPU-a"}, {1, "GPU-b"}};
  const auto shares = agent::ReadNebulyConfig(text, gpus);
  if (!shares.ok()) {
    Require(shares.status().code() == Code::kInvalid, "refused as invalid");
  } else {
    for (const auto& [share, count] : *shares) {
      Require(share.first == "GPU-a" || share.first == "GPU-b", "of the node's GPUs");
      Require(share.second >= 1 && count >= 1, "some of some size");
    }
    const std::string written = agent::WriteNebulyConfig(*shares);
    const auto again = agent::ReadNebulyConfig(written, gpus);
    Require(again.ok() && *again == *shares, "the same again");
    const std::string key = agent::NebulyKey("node-1", written, 0);
    Require(agent::IsNebulyKeyOf("node-1", key), "its own key");
  }
  const bool one = agent::IsNebulyKeyOf("node-1", text);
  Require(!one || !agent::IsNebulyKeyOf("node-10", text), "a key is one node's");
  return 0;
}
