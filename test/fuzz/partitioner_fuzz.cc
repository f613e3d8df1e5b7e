// A node that writes arbitrary annotations, as its credential allows, in front of a partitioner.
// Plans are still made, written, refused and acknowledged, and little state is kept for the node.
// Input lines:
//
//   key=value        an annotation, without its prefix
//   label key=value  a label
//   pod 1g.5gb       a pending pod with this request
//   -                runs the partitioner on everything so far
#include <string>

#include "base/text.h"
#include "cluster/annotations.h"
#include "codec/utf8.h"
#include "controllers/partitioner.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "reconcile/testing/scene.h"
#include "scheduling/framework.h"
#include "target.h"

using namespace nos;               // NOLINT
using namespace nos::controllers;  // NOLINT

namespace {

constexpr size_t kMaxLines = 50;

class Cluster {
 public:
  Cluster() {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", "n"},
                {"labels",
                 {{cluster::kPartitioningLabel, "mig"},
                  {cluster::kProductLabel, "NVIDIA-A100-SXM4-40GB"},
                  {cluster::kCountLabel, "2"}}},
                {"annotations", JsonObject{}}}},
              {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}});
  }

  void Take(std::string_view line) {
    constexpr std::string_view kPod = "pod ", kLabel = "label ";
    if (line == "-") return Run();
    if (line.starts_with(kPod)) return AddPod(line.substr(kPod.size()));
    if (line.starts_with(kLabel)) return Set("labels", "", line.substr(kLabel.size()));
    Set("annotations", cluster::kPrefix, line);
  }

  void Run() {
    Require(reconcile::testing::RunFor(runner_, clock_, std::chrono::seconds(70)),
            "it comes to rest");
    for (const Decision& decision : partitioner_.decisions()) {
      const size_t size = decision.note.size() + decision.plan_id.size() + decision.before.size();
      Require(size < 2000, "what is remembered is little");
    }
  }

 private:
  void Set(std::string_view where, std::string_view prefix, std::string_view line) {
    const size_t at = line.find('=');
    if (at == std::string_view::npos) return;
    Json node = *api_.Find("nodes", "n");
    const std::string key = std::string(prefix).append(line.substr(0, at));
    MakeObject(node, "metadata", where)[key] = line.substr(at + 1);
    api_.Put(std::move(node));
  }

  void AddPod(std::string_view profile) {
    const std::string name = "p" + std::to_string(++pods_);
    const std::string resource = "nvidia.com/mig-" + std::string(profile);
    const JsonObject waits = {
        {"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
    api_.Put({{"kind", "Pod"},
              {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", name}}},
              {"spec",
               {{"containers",
                 JsonArray{{{"name", "main"}, {"resources", {{"limits", {{resource, "1"}}}}}}}}}},
              {"status", {{"phase", "Pending"}, {"conditions", JsonArray{waits}}}}});
  }

  ManualClock clock_{Time(std::chrono::seconds(1'800'000'000))};
  kube::FakeApi api_;
  const scheduling::Framework framework_ = scheduling::Framework::Default();
  Partitioner partitioner_{{}, framework_, gpu::Catalogue::Builtin()};
  reconcile::Runner runner_{partitioner_, api_};
  int pods_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = FuzzText(data, size);
  if (!IsUtf8(text)) return 0;  // API servers accept only UTF-8
  Cluster cluster;
  size_t lines = 0;
  for (const std::string_view line : Split(text, '\n')) {
    if (++lines > kMaxLines) break;
    cluster.Take(line);
  }
  cluster.Run();
  return 0;
}
