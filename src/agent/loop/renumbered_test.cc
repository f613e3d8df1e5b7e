// GPUs whose indices change while an agent runs, for example when a GPU with a lower index
// disappears.
#include <utility>

#include "agent/loop/fixture_test.h"

namespace nos::agent {
namespace {

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

// Swaps the indices of two GPUs.
class Renumbered final : public device::Backend {
 public:
  explicit Renumbered(device::Backend& backend) : backend_(backend) {}
  std::function<void()> before_listing;
  bool changed = false;

  Result<std::vector<device::GpuInfo>> ListGpus() override {
    if (before_listing) before_listing();
    NOS_ASSIGN(std::vector<device::GpuInfo> infos, backend_.ListGpus());
    for (device::GpuInfo& info : infos) info.index = At(info.index);
    if (changed) std::swap(infos.at(0), infos.at(1));
    return infos;
  }
  Result<std::vector<device::GpuInstance>> ListInstances(int gpu) override {
    NOS_ASSIGN(std::vector<device::GpuInstance> instances, backend_.ListInstances(At(gpu)));
    for (device::GpuInstance& instance : instances) instance.gpu = gpu;
    return instances;
  }
  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    return backend_.Create(At(gpu), profile, start);
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    return backend_.Destroy(At(gpu), instance_id);
  }
  Status EnableMig(int gpu) override { return backend_.EnableMig(At(gpu)); }
  Status DisableMig(int gpu) override { return backend_.DisableMig(At(gpu)); }
  Status SetComputeMode(int gpu, device::ComputeMode mode) override {
    return backend_.SetComputeMode(At(gpu), mode);
  }
  device::Readings MeasureGpu(int gpu) override { return backend_.MeasureGpu(At(gpu)); }
  device::Readings MeasureInstance(const device::GpuInstance& instance) override {
    return backend_.MeasureInstance(instance);
  }

 private:
  int At(int gpu) const { return changed ? 1 - gpu : gpu; }

  device::Backend& backend_;
};

class AgentRenumberedTest : public AgentTest {
 protected:
  AgentRenumberedTest() { Restart(boards_); }

  Renumbered boards_{gpus_};
};

// Instances of different GPUs can have the same id.
TEST_F(AgentRenumberedTest, DoesNotDestroyInstanceOfGpuThatTookOverTheIndex) {
  const device::GpuInstance free = gpus_.Place(0, "1g.5gb", 0).value();
  const device::GpuInstance held = gpus_.Place(1, "1g.5gb", 0).value();
  ASSERT_EQ(free.id, held.id);
  Json pod = BoundPod("a", "a-uid", {}, {Asking("c", "1")});
  pod.as_object()["status"] = {{"phase", "Running"},
                               {"conditions", JsonArray{{{"type", "Ready"}, {"status", "True"}}}}};
  api_.Put(pod);
  kubelet_.Assign({"ml", "a", "c", kSlice, held.uuid});
  Run();
  ASSERT_TRUE(kubelet_.Offers(free.uuid));
  // The indices change after the instance has left the offer, just before it is destroyed.
  boards_.before_listing = [&] { boards_.changed |= !kubelet_.Offers(free.uuid); };
  Apply("7", {{0, "1g.5gb@1"}, {1, "1g.5gb@1"}});
  EXPECT_TRUE(boards_.changed);
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(gpus_.Truth(1).size(), 2U) << "the held instance and a new one";
  EXPECT_EQ(gpus_.Truth(0).size(), 1U);
}

}  // namespace
}  // namespace nos::agent
