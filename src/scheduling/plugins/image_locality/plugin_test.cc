#include "scheduling/plugins/image_locality/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMb = 1024 * int64_t{1024};
using Images = std::vector<std::pair<std::string, int64_t>>;

cluster::Node With(const std::string& name, const Images& images) {
  cluster::Node node = testing::NodeOf(name);
  for (const auto& [image, megabytes] : images) {
    node.images.push_back({cluster::ImageId(image), megabytes * kMb});
  }
  std::ranges::sort(node.images, {}, &cluster::NodeImage::name);
  return node;
}

cluster::Pod Of(const std::vector<std::string>& images, const std::vector<std::string>& init = {}) {
  cluster::Pod pod = testing::PodOf("p");
  pod.containers.clear();
  for (const std::string& image : images) pod.containers.push_back({"c", {}, {}, false, image});
  for (const std::string& image : init) pod.init_containers.push_back({"i", {}, {}, false, image});
  return pod;
}

std::vector<int64_t> Scores(const cluster::Pod& pod, const std::vector<cluster::Node>& nodes) {
  const auto snapshot = testing::Snap(nodes);
  const ImageLocality plugin;
  CycleState state;
  EXPECT_TRUE(plugin.PreScore(pod, snapshot, {}, state));
  std::vector<int64_t> scores;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    scores.push_back(plugin.Score(state, pod, snapshot.node(i)));
  }
  return scores;
}

TEST(ImageLocalityTest, ScoresImageSizeScaledByFractionOfNodes) {
  const auto first = With(
      "a", {{"gcr.io/40:latest", 40}, {"gcr.io/300:latest", 300}, {"gcr.io/2000:latest", 2000}});
  const auto second = With("b", {{"gcr.io/250:latest", 250}, {"gcr.io/10:latest", 10}});
  // 250 MB on half of the nodes: 125 of 2000 MB, minus 23.
  EXPECT_THAT(Scores(Of({"gcr.io/40", "gcr.io/250"}), {first, second}),
              ElementsAre(0, 100 * (125 - 23) / (2000 - 23)));
  EXPECT_THAT(Scores(Of({"gcr.io/40", "gcr.io/300"}), {first, second}),
              ElementsAre(100 * (20 + 150 - 23) / (2000 - 23), 0));
  // The size is capped at 1000 MB per container.
  EXPECT_THAT(Scores(Of({"gcr.io/2000"}), {With("a", {{"gcr.io/2000:latest", 4000}}), second}),
              ElementsAre(100, 0));
  EXPECT_THAT(Scores(Of({"gcr.io/30"}, {"gcr.io/300"}), {first, second}),
              ElementsAre(100 * (150 - 23) / (2000 - 23), 0));
  // An image used twice counts twice.
  EXPECT_THAT(Scores(Of({"gcr.io/300", "gcr.io/300"}), {first, second}),
              ElementsAre(100 * (300 - 23) / (2000 - 23), 0));
  EXPECT_THAT(Scores(Of({"x/none"}), {first, second}), ElementsAre(0, 0));
  EXPECT_THAT(Scores(Of({}), {first, second}), ElementsAre(0, 0));
}

TEST(ImageLocalityTest, AddsLatestTagToImageName) {
  EXPECT_EQ(FullImageName("root"), "root:latest");
  EXPECT_EQ(FullImageName("root:tag"), "root:tag");
  EXPECT_EQ(FullImageName("gcr.io:5000/root"), "gcr.io:5000/root:latest");
  EXPECT_EQ(FullImageName("root@sha256:abc"), "root@sha256:abc");
  EXPECT_EQ(FullImageName(""), ":latest");
}

}  // namespace
}  // namespace nos::scheduling
