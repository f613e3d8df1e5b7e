#include "scheduling/plugins/image_locality/plugin.h"

#include <algorithm>

namespace nos::scheduling {
namespace {

constexpr int64_t kMegabyte = int64_t{1024} * 1024;
constexpr int64_t kMinBytes = 23 * kMegabyte;  // smaller images are pulled quickly
constexpr int64_t kMaxBytesOfContainer = 1000 * kMegabyte;

struct Image {
  uint64_t name = 0;
  double spread = 0;  // fraction of nodes that have the image
};

struct Wanted {
  std::vector<Image> images;  // one per container
};

const cluster::NodeImage* FindImage(const cluster::NodeInfo& node, uint64_t name) {
  const auto& images = node.node->images;
  const auto found = std::ranges::lower_bound(images, name, {}, &cluster::NodeImage::name);
  return found == images.end() || found->name != name ? nullptr : &*found;
}

double SpreadOf(uint64_t image, const cluster::ClusterSnapshot& snapshot) {
  int nodes = 0;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    if (FindImage(snapshot.node(i), image) != nullptr) ++nodes;
  }
  return static_cast<double>(nodes) / static_cast<double>(snapshot.size());
}

}  // namespace

std::string FullImageName(std::string_view image) {
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return std::string(image) + (tagged ? "" : ":latest");
}

bool ImageLocality::PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                             Nodes, CycleState& state) const {
  Wanted wanted;
  const auto add = [&](const cluster::Container& container) {
    const uint64_t name = cluster::ImageId(FullImageName(container.image));
    const auto same = std::ranges::find(wanted.images, name, &Image::name);
    const double spread = same != wanted.images.end() ? same->spread : SpreadOf(name, snapshot);
    wanted.images.push_back({name, spread});
  };
  std::ranges::for_each(pod.init_containers, add);
  std::ranges::for_each(pod.containers, add);
  state.Set(std::move(wanted));
  return true;
}

int64_t ImageLocality::Score(const CycleState& state, const cluster::Pod&,
                             const cluster::NodeInfo& node) const {
  const auto* wanted = state.Get<Wanted>();
  if (wanted == nullptr || wanted->images.empty()) return 0;
  int64_t bytes = 0;
  for (const Image& image : wanted->images) {
    const cluster::NodeImage* there = FindImage(node, image.name);
    if (there != nullptr) {
      bytes += static_cast<int64_t>(static_cast<double>(there->bytes) * image.spread);
    }
  }
  const int64_t most = kMaxBytesOfContainer * static_cast<int64_t>(wanted->images.size());
  bytes = std::clamp(bytes, kMinBytes, most);
  return kMaxScore * (bytes - kMinBytes) / (most - kMinBytes);
}

}  // namespace nos::scheduling
