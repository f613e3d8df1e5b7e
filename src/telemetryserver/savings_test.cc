#include "telemetryserver/savings.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kHourLong = 3'600'000;
const std::string kA100 = "NVIDIA A100-SXM4-40GB";  // 7 slices of 5 GB

using Kind = DeviceRequest::Kind;

class SavingsTest : public ::testing::Test {
 protected:
  void AddGpus(int count, const std::string& product = kA100) {
    for (int i = 0; i < count; ++i)
      past_.gpus.push_back({product, 40'960, {{past_.from, kEndless}}});
  }
  // Pods that ran for an hour each from the beginning, without waiting.
  void AddPods(int count, const DeviceRequest& request) {
    for (int i = 0; i < count; ++i) past_.pods.push_back({{request}, 0, 0, 0, kHourLong});
  }
  Savings Run() {
    auto savings = SavingsOf(past_, gpu::Catalogue::Builtin(), [] { return false; });
    EXPECT_TRUE(savings.ok()) << savings.status().ToString();
    return savings.value_or(Savings());
  }

  Past past_{.from = 0, .to = 10 * kHourLong};
};

TEST_F(SavingsTest, SevenSmallPodsOnOneGpuNeedSevenWholeGpus) {
  AddGpus(1);
  AddPods(7, {.kind = Kind::kProfile, .profile = "1g.5gb"});
  const Savings savings = Run();
  EXPECT_EQ(savings.pods, 7U);
  EXPECT_EQ(savings.started, 7U);
  EXPECT_EQ(savings.waiting_hours, 0);
  EXPECT_EQ(savings.gpu_hours, 10);
  ASSERT_EQ(savings.alternatives.size(), 2U);
  const Alternative& whole = savings.alternatives[0];
  EXPECT_EQ(whole.name, kWholeGpus);
  // One after the other: 1 + 2 + .. + 6 hours.
  EXPECT_DOUBLE_EQ(whole.waiting_hours.middle, 21);
  EXPECT_EQ(whole.started.middle, 7);
  EXPECT_EQ(whole.gpus.low, 7);
  EXPECT_EQ(whole.gpus.high, 7);
  // A static layout of seven slices serves them as well.
  const Alternative& fixed = savings.alternatives[1];
  EXPECT_EQ(fixed.waiting_hours.high, 0);
  EXPECT_EQ(fixed.gpus.high, 1);
  EXPECT_EQ(fixed.layouts, (std::vector<std::pair<std::string, int64_t>>{{"7x1g.5gb", 1}}));
}

// Small pods by day, large ones by night: no static layout serves both on one GPU.
TEST_F(SavingsTest, ChangingDemandNeedsMoreStaticGpus) {
  AddGpus(1);
  AddPods(7, {.kind = Kind::kProfile, .profile = "1g.5gb"});
  for (int i = 0; i < 2; ++i) {
    past_.pods.push_back({{{.kind = Kind::kProfile, .profile = "3g.20gb"}},
                          0,
                          2 * kHourLong,
                          2 * kHourLong,
                          3 * kHourLong});
  }
  const Savings savings = Run();
  const Alternative& fixed = savings.alternatives[1];
  EXPECT_GT(fixed.waiting_hours.low, 0);
  EXPECT_GE(fixed.gpus.low, 2);
  EXPECT_TRUE(fixed.enough);
}

TEST_F(SavingsTest, WholeGpuPodsSaveNothing) {
  AddGpus(4);
  AddPods(4, {.kind = Kind::kGpu});
  for (const Alternative& alternative : Run().alternatives) {
    EXPECT_EQ(alternative.waiting_hours.high, 0) << alternative.name;
    EXPECT_EQ(alternative.gpus.high, 4) << alternative.name;
  }
}

TEST_F(SavingsTest, GpusAreNeverFewerThanThereWere) {
  AddGpus(10);
  AddPods(1, {.kind = Kind::kProfile, .profile = "1g.5gb"});
  for (const Alternative& alternative : Run().alternatives) {
    EXPECT_EQ(alternative.gpus.low, 10) << alternative.name;
    EXPECT_EQ(alternative.gpus.high, 10) << alternative.name;
  }
}

TEST_F(SavingsTest, WaitingAsItWasCountsForBoth) {
  AddGpus(1);
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, 0, 0, 5 * kHourLong});
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, kHourLong, 5 * kHourLong, kEndless});
  const Savings savings = Run();
  EXPECT_EQ(savings.waiting_hours, 4);
  for (const Alternative& alternative : savings.alternatives) {
    EXPECT_EQ(alternative.waiting_hours.middle, 4) << alternative.name;
    EXPECT_EQ(alternative.gpus.middle, 1) << alternative.name;
  }
}

TEST_F(SavingsTest, UnknownRunTimesSpreadTheResult) {
  AddGpus(1);
  // The first one never ran; alone on a whole GPU, others wait for it.
  PastPod unknown{{{.kind = Kind::kProfile, .profile = "1g.5gb"}}, 10, 0};
  unknown.similar_runs = {kHourLong / 10, kHourLong, 4 * kHourLong, 8 * kHourLong};
  past_.pods.push_back(unknown);
  past_.pods.push_back({{{.kind = Kind::kProfile, .profile = "1g.5gb"}}, 0, 1, 1, 1 + kHourLong});
  const Savings savings = Run();
  EXPECT_EQ(savings.unknown_runs, 1U);
  EXPECT_EQ(savings.waiting_hours, 10);
  const Spread& waiting = savings.alternatives[0].waiting_hours;
  EXPECT_LT(waiting.low, waiting.high);
  EXPECT_LE(waiting.low, waiting.middle);
}

TEST_F(SavingsTest, PodsThatNoGpuServesAreLeftOut) {
  AddGpus(1);
  past_.left_out = 2;
  AddPods(1, {.kind = Kind::kProfile, .profile = "9g.99gb"});
  AddPods(1, {.kind = Kind::kMemory, .gib = 10});
  const Savings savings = Run();
  EXPECT_EQ(savings.pods, 1U);
  EXPECT_EQ(savings.left_out, 3U);
}

TEST_F(SavingsTest, SharesFitInstancesAndEqualShares) {
  AddGpus(1, "NVIDIA L4");  // 24 GB, no MIG
  past_.gpus.front().memory_mib = 23'034;
  AddPods(4, {.kind = Kind::kMemory, .gib = 5});
  const Savings savings = Run();
  EXPECT_EQ(savings.alternatives[1].gpus.high, 1);
  EXPECT_EQ(savings.alternatives[0].gpus.low, 4);
}

TEST_F(SavingsTest, NoGpusOrPodsHaveNoAlternatives) {
  EXPECT_TRUE(Run().alternatives.empty());
  AddGpus(1);
  EXPECT_TRUE(Run().alternatives.empty());
  past_.gpus = {{kA100, 40'960, {{past_.to, kEndless}}}};  // it comes too late
  AddPods(1, {.kind = Kind::kGpu});
  EXPECT_TRUE(Run().alternatives.empty());
}

TEST_F(SavingsTest, GpuThatComesLaterServesLater) {
  past_.gpus.push_back({kA100, 40'960, {{2 * kHourLong, kEndless}}});
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, 0, 2 * kHourLong, 3 * kHourLong});
  const Savings savings = Run();
  EXPECT_EQ(savings.gpu_hours, 8);
  EXPECT_EQ(savings.alternatives[0].waiting_hours.middle, 2);
  EXPECT_DOUBLE_EQ(savings.gpus, 0.8);  // for 8 of 10 hours
  EXPECT_DOUBLE_EQ(savings.alternatives[0].gpus.middle, 0.8);
}

TEST_F(SavingsTest, GpuThatGoesAndReturnsIsOne) {
  past_.gpus.push_back({kA100, 40'960, {{0, kHourLong}, {2 * kHourLong, kEndless}}});
  AddPods(1, {.kind = Kind::kGpu});
  const Savings savings = Run();
  EXPECT_DOUBLE_EQ(savings.gpus, 0.9);
  EXPECT_DOUBLE_EQ(savings.alternatives[0].gpus.high, 0.9);
}

// A job of all GPUs, then small pods: whole GPUs serve both, so static layouts need no more.
TEST_F(SavingsTest, StaticLayoutsMayBeWholeGpus) {
  AddGpus(8);
  past_.pods.push_back({{{.kind = Kind::kGpu, .count = 8}}, 0, 0, 0, kHourLong});
  for (int i = 0; i < 4; ++i) {
    past_.pods.push_back({{{.kind = Kind::kProfile, .profile = "1g.5gb"}},
                          0,
                          3 * kHourLong,
                          3 * kHourLong,
                          9 * kHourLong});
  }
  for (const Alternative& alternative : Run().alternatives) {
    EXPECT_EQ(alternative.waiting_hours.high, 0) << alternative.name;
    EXPECT_EQ(alternative.gpus.high, 8) << alternative.name;
  }
}

// One GPU for all of the time and many for minutes, and demand for one more of the first kind.
TEST_F(SavingsTest, AddedGpusCountForAsLongAsThoseThatTheyAreLike) {
  AddGpus(1);
  for (int i = 0; i < 30; ++i) {
    past_.gpus.push_back({kA100, 40'960, {{i * kHourLong / 6, (i + 1) * kHourLong / 6}}});
  }
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, 0, 0, kEndless});
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, 9 * kHourLong, 9 * kHourLong, kEndless});
  const Savings savings = Run();
  EXPECT_DOUBLE_EQ(savings.gpus, 1.5);
  EXPECT_DOUBLE_EQ(savings.alternatives[0].gpus.low, 2.5);
}

TEST_F(SavingsTest, AddedGpusAreCountedOneByOne) {
  AddGpus(400);
  AddPods(401, {.kind = Kind::kGpu});
  EXPECT_EQ(Run().alternatives[0].gpus.high, 401);
}

TEST_F(SavingsTest, RunningPodsGoBeforePendingOnesOfHigherPriority) {
  AddGpus(1);
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 0, 0, 0, 5 * kHourLong});
  past_.pods.push_back({{{.kind = Kind::kGpu}}, 100, 0, 5 * kHourLong, kEndless});
  EXPECT_DOUBLE_EQ(Run().alternatives[0].waiting_hours.middle, 5);
}

TEST_F(SavingsTest, StopsWhenTimeIsUpAndAtTooManyKinds) {
  AddGpus(1);
  AddPods(7, {.kind = Kind::kProfile, .profile = "1g.5gb"});
  const auto stopped = SavingsOf(past_, gpu::Catalogue::Builtin(), [] { return true; });
  EXPECT_EQ(stopped.status().code(), Code::kInvalid);
  for (int gib = 1; gib < 100; ++gib) {
    past_.gpus.push_back({"Odd 9000", int64_t{gib} * 1024, {{0, kEndless}}});
  }
  const auto kinds = SavingsOf(past_, gpu::Catalogue::Builtin(), [] { return false; });
  EXPECT_EQ(kinds.status().code(), Code::kInvalid);
}

// Random pasts: results are the same each time, and no alternative starts more pods than there are.
TEST_F(SavingsTest, RandomPastsAreDeterministicAndBounded) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    past_ = {.from = 0, .to = 10 * kHourLong};
    AddGpus(1 + static_cast<int>(random.Below(5)));
    if (random.Chance(0.5)) AddGpus(2, "NVIDIA H100 80GB HBM3");
    const std::vector<DeviceRequest> kinds = {{.kind = Kind::kProfile, .profile = "1g.5gb"},
                                              {.kind = Kind::kProfile, .profile = "1g.10gb"},
                                              {.kind = Kind::kMemory, .gib = 9},
                                              {.kind = Kind::kGpu, .count = 2},
                                              {.kind = Kind::kTimeSlice},
                                              {.kind = Kind::kProfile, .profile = "1g.5gb+me"}};
    for (int i = 0; i < 60; ++i) {
      const auto asked = static_cast<telemetry::Millis>(random.Below(9 * kHourLong));
      PastPod pod{
          {kinds[random.Below(kinds.size())]}, static_cast<int64_t>(random.Below(3)), asked};
      if (random.Chance(0.8)) {
        pod.bound = asked + static_cast<telemetry::Millis>(random.Below(kHourLong));
        if (random.Chance(0.7))
          pod.ended = pod.bound + static_cast<telemetry::Millis>(random.Below(kHourLong));
      }
      past_.pods.push_back(pod);
    }
    const Savings one = Run(), two = Run();
    ASSERT_EQ(one.alternatives.size(), 2U);
    for (size_t a = 0; a < 2; ++a) {
      const Alternative &first = one.alternatives[a], &second = two.alternatives[a];
      EXPECT_EQ(first.waiting_hours.middle, second.waiting_hours.middle);
      EXPECT_EQ(first.gpus.high, second.gpus.high);
      EXPECT_LE(first.started.high, static_cast<double>(one.pods));
      EXPECT_GE(first.waiting_hours.low, 0);
      EXPECT_LE(first.gpus.low, first.gpus.middle);
      EXPECT_LE(first.gpus.middle, first.gpus.high);
    }
    EXPECT_LE(one.alternatives[1].waiting_hours.high, one.alternatives[0].waiting_hours.high);
  }
}

}  // namespace
}  // namespace nos::telemetryserver
