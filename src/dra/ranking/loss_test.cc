#include "dra/least_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

#include "dra/allocation/world_test.h"
#include "gpu/fragmentation.h"

namespace nos::dra {
namespace {

constexpr const char* kProduct = "NVIDIA A100-SXM4-40GB";

// A GPU as NVIDIA's driver publishes it with dynamic MIG: itself and all placements of the
// catalogue, with a counter for each slot. `product`: as the device says.
class LeastLossTest : public ::testing::Test {
 protected:
  const gpu::Model& model() const { return *gpu::Catalogue::Builtin().FindByProduct(kProduct); }

  void PutGpu(int index, const std::string& product = kProduct, const std::string& more = "") {
    const std::string gpu = "gpu-" + std::to_string(index);
    std::string devices = DeviceOf(gpu, gpu, "gpu", "", product, 0, model().slots()) + more;
    for (const gpu::Placement& placement : model().layouts().placements()) {
      const gpu::Profile& profile = model().profile(placement.profile);
      std::string label = profile.name;
      std::erase(label, '.');
      std::replace(label.begin(), label.end(), '+', '-');
      devices += "," + DeviceOf(gpu + "-mig-" + label + "-9-" + std::to_string(placement.start),
                                gpu, "mig", profile.name, product, placement.start, profile.slots);
    }
    std::string counters;
    for (int slot = 0; slot < model().slots(); ++slot) {
      counters += (slot == 0 ? "" : ",") + Counter(slot);
    }
    const std::string pool = "p" + std::to_string(index);
    world_.Put(gpu, Driver(R"("devices": [)" + devices + "]"), pool, 2);
    world_.Put(
        gpu + "-counters",
        Driver(R"("sharedCounters": [{"name": ")" + gpu + R"(", "counters": {)" + counters + "}}]"),
        pool, 2);
  }
  static std::string DeviceOf(const std::string& name, const std::string& gpu,
                              const std::string& type, const std::string& profile,
                              const std::string& product, int start, int slots) {
    std::string counters;
    for (int slot = start; slot < start + slots; ++slot) {
      counters += (slot == start ? "" : ",") + Counter(slot);
    }
    return R"({"name": ")" + name + R"(", "attributes": {"type": {"string": ")" + type +
           R"("}, "profile": {"string": ")" + profile + R"("}, "productName": {"string": ")" +
           product + R"("}, ")" + (type == "gpu" ? "uuid" : "parentUUID") +
           R"(": {"string": "GPU-)" + gpu + R"("}}, "consumesCounters": [{"counterSet": ")" + gpu +
           R"(", "counters": {)" + counters + "}}]}";
  }
  static std::string Counter(int slot) {
    return "\"memory-slice-" + std::to_string(slot) + R"(": {"value": "1"})";
  }
  static std::string Driver(const std::string& spec) {
    return R"({"driver": "gpu.nvidia.com", )" + spec + "}";
  }

  // A claim for instances of a profile; "gpu": whole GPUs; "": anything.
  static std::string Ask(const std::string& profile, int count = 1) {
    const std::string attribute = profile == "gpu" ? "type" : "profile";
    const std::string selector = profile.empty() ? "true"
                                                 : R"(device.attributes[\"gpu.nvidia.com\"].)" +
                                                       attribute + R"( == \")" + profile + R"(\")";
    return R"({"requests": [{"name": "r", "exactly": {"count": )" + std::to_string(count) +
           R"(, "selectors": [{"cel": {"expression": ")" + selector + R"("}}]}}]})";
  }
  AllocationOutcome Try(const std::string& claim) {
    AllocationOptions options;
    options.ranking = &ranking_;
    return world_.Try(claim, options);
  }
  std::string Take(const std::string& profile, int count = 1) {
    const AllocationOutcome outcome = Try(Ask(profile, count));
    if (outcome.kind == AllocationOutcome::Kind::kAllocated) {
      world_.inventory.Allocate("c" + std::to_string(next_++), outcome.allocations.at(0));
    }
    return World::Text(outcome);
  }
  // The device is in use from now on.
  void Use(int gpu, const std::string& device) {
    Allocation allocation;
    AllocatedDevice& used = allocation.devices.emplace_back();
    used.driver = Name("gpu.nvidia.com");
    used.pool = Name("p" + std::to_string(gpu));
    used.device = Name(device);
    world_.inventory.Allocate("c" + std::to_string(next_++), allocation);
  }

  World world_;
  LeastLoss ranking_;
  int next_ = 0;
};

TEST_F(LeastLossTest, TakesTheStartThatCostsLeast) {
  PutGpu(0);
  EXPECT_EQ(World::Text(world_.Try(Ask("1g.5gb"))), "gpu-0-mig-1g5gb-9-0") << "kube-scheduler";
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-6");
  EXPECT_EQ(Take("3g.20gb"), "gpu-0-mig-3g20gb-9-0");
}

TEST_F(LeastLossTest, FillsTheGpuThatLosesLeast) {
  PutGpu(0);
  PutGpu(1);
  Use(1, "gpu-1-mig-4g20gb-9-0");
  EXPECT_EQ(World::Text(world_.Try(Ask("3g.20gb"))), "gpu-0-mig-3g20gb-9-0");
  EXPECT_EQ(Take("3g.20gb"), "gpu-1-mig-3g20gb-9-4");
  EXPECT_EQ(Take("3g.20gb"), "gpu-0-mig-3g20gb-9-4");
}

TEST_F(LeastLossTest, DevicesOfOneCallCount) {
  PutGpu(0);
  PutGpu(1);
  EXPECT_EQ(Take("4g.20gb", 2), "gpu-0-mig-4g20gb-9-0 gpu-1-mig-4g20gb-9-0");
  EXPECT_EQ(Take("1g.5gb", 3), "gpu-0-mig-1g5gb-9-6 gpu-0-mig-1g5gb-9-5 gpu-0-mig-1g5gb-9-4");
}

// The same choice as the rule, which has tests of its own, in a random history.
TEST_F(LeastLossTest, ChoosesByTheRule) {
  constexpr int kGpus = 3;
  for (int i = 0; i < kGpus; ++i) PutGpu(i);
  const gpu::Fragmentation rule(model());
  std::vector<gpu::LayoutId> layouts(kGpus, gpu::LayoutTable::kEmpty);
  struct Job {
    std::string claim;
    size_t gpu;
    gpu::PlacementId placement;
  };
  std::vector<Job> jobs;
  Random random(7);
  int placed = 0;
  for (int i = 0; i < 400; ++i) {
    if (!jobs.empty() && random.Below(5) < 2) {
      const Job job = jobs[random.Below(jobs.size())];
      std::erase_if(jobs, [&](const Job& each) { return each.claim == job.claim; });
      layouts[job.gpu] = rule.layouts().Remove(layouts[job.gpu], job.placement);
      world_.inventory.Release(job.claim);
      continue;
    }
    const std::vector<gpu::ProfileId> plain = gpu::PlainProfiles(model());
    const gpu::ProfileId profile = plain[random.Below(plain.size())];
    const auto rank = [&](gpu::LayoutId layout) { return rule.Rank(layout, profile); };
    const auto best = std::ranges::min_element(layouts, {}, rank);
    const std::string claim = "c" + std::to_string(next_);
    const std::string got = Take(model().profile(profile).name);
    if (rank(*best) == gpu::Fragmentation::kNoRank) {
      EXPECT_EQ(got, "no");
      continue;
    }
    const auto gpu = static_cast<size_t>(best - layouts.begin());
    const gpu::PlacementId placement = rule.Best(*best, profile);
    const std::string start =
        "-9-" + std::to_string(int{rule.layouts().placements()[placement].start});
    EXPECT_TRUE(got.starts_with("gpu-" + std::to_string(gpu) + "-")) << got;
    EXPECT_TRUE(got.ends_with(start)) << got << " instead of " << start;
    *best = rule.layouts().Add(*best, placement);
    jobs.push_back({claim, gpu, placement});
    ++placed;
  }
  EXPECT_GT(placed, 100);
}

TEST_F(LeastLossTest, WholeGpusAreTheLastChoice) {
  PutGpu(0);
  PutGpu(1);
  Use(0, "gpu-0-mig-1g5gb-9-6");
  EXPECT_EQ(World::Text(world_.Try(Ask(""))), "gpu-0-mig-1g5gb-9-0");
  EXPECT_EQ(Take("gpu"), "gpu-1");
  EXPECT_EQ(Take("gpu"), "no");
  EXPECT_EQ(Take("7g.40gb"), "no");
}

TEST_F(LeastLossTest, SumsUpWhatDevicesCost) {
  PutGpu(0);
  PutGpu(1);
  PutGpu(2);
  EXPECT_EQ(Try(Ask("gpu")).loss, (DeviceLoss{1, 16, 0})) << "two other GPUs are empty";
  EXPECT_EQ(Try(Ask("gpu", 2)).loss, (DeviceLoss{2, 8, 0}));
  EXPECT_EQ(Try(Ask("7g.40gb")).loss, (DeviceLoss{1, 0, 64 << 16}));
  const DeviceLoss fresh = Try(Ask("3g.20gb")).loss;
  EXPECT_GT(fresh.gpus, 0);
  EXPECT_EQ(fresh.free_slots, 4);
  Use(0, "gpu-0-mig-4g20gb-9-0");
  const DeviceLoss beside = Try(Ask("3g.20gb")).loss;
  EXPECT_LT(beside.gpus, fresh.gpus);
  EXPECT_EQ(beside.free_slots, 0);
  EXPECT_EQ(world_.Try(Ask("3g.20gb")).loss, DeviceLoss()) << "without a ranking";
}

// A GPU with more instances stays in use anyway.
TEST_F(LeastLossTest, TiesAreForMoreInstances) {
  PutGpu(0);
  Use(0, "gpu-0-mig-3g20gb-9-4");
  const DeviceLoss one = Try(Ask("4g.20gb")).loss;
  world_.inventory.Release("c0");
  for (const char* start : {"4", "5", "6"}) Use(0, std::string("gpu-0-mig-1g5gb-9-") + start);
  const DeviceLoss three = Try(Ask("4g.20gb")).loss;
  EXPECT_EQ(three.free_slots - one.free_slots, 1) << "slot 7";
  EXPECT_LT(three.tie, one.tie);
}

// Any driver may write any text into its slices.
TEST_F(LeastLossTest, LeavesUnknownDevicesInTheirOrder) {
  PutGpu(0, "NVIDIA Q9000");
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-0") << "no such product";
  PutGpu(0, "");
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-1");
  const auto odd = [](const std::string& name, const std::string& profile) {
    return "," + DeviceOf(name, "gpu-1", "mig", profile, kProduct, 0, 1);
  };
  PutGpu(1, kProduct,
         odd("gpu-1-mig-a", "1g.5gb") + odd("gpu-1-mig-b-99999999999999999999", "1g.5gb") +
             odd("gpu-1-mig-c-7", "1g.5gb") + odd("gpu-1-mig-d-", "1g.5gb") + odd("e-0", "1g.5gb") +
             odd("gpu-1-mig-f-0", "9g.9tb"));
  EXPECT_EQ(Take("9g.9tb"), "gpu-1-mig-f-0");
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-2");
}

// The slots that are left beside it are not known.
TEST_F(LeastLossTest, DoesNotRankBesideAnUnknownInstance) {
  PutGpu(0, kProduct, "," + DeviceOf("gpu-0-mig-x-0", "gpu-0", "mig", "9g.9tb", kProduct, 0, 1));
  Use(0, "gpu-0-mig-x-0");
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-1");
}

TEST_F(LeastLossTest, OtherDriversKeepTheirOrder) {
  world_.Put("s", R"({"devices": [{"name": "d0"}, {"name": "d1"}]})", "a");
  PutGpu(0);
  EXPECT_EQ(Take(""), "d0");
  EXPECT_EQ(Take(""), "d1");
  EXPECT_EQ(Take(""), "gpu-0-mig-1g5gb-9-6") << "the device that costs least";
}

// Two devices of one GPU name different products; the GPU is what the first says.
TEST_F(LeastLossTest, ContradictingDevicesAreNotRanked) {
  PutGpu(0, kProduct,
         "," + DeviceOf("gpu-0-mig-1g12gb-9-6", "gpu-0", "mig", "1g.10gb", "NVIDIA H100 80GB HBM3",
                        6, 1));
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-6");
  EXPECT_EQ(Take("1g.5gb"), "gpu-0-mig-1g5gb-9-5");
}

}  // namespace
}  // namespace nos::dra
