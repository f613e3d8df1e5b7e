#include "study/churn/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>

#include "base/text.h"
#include "gpu/fragmentation.h"
#include "study/churn/mix.h"
#include "study/churn/packing.h"

namespace nos::study {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::array kAllPolicies = {ChurnPolicy::kNos,
                                     ChurnPolicy::kFirstFit,
                                     ChurnPolicy::kBestFit,
                                     ChurnPolicy::kLargestFreeRun,
                                     ChurnPolicy::kPlacementsLost,
                                     ChurnPolicy::kRepack};
constexpr std::array kMixes = {"uniform", "skew-small", "skew-big", "bimodal", "inference"};

ChurnOptions Short(ChurnPolicy policy, const char* mix = "uniform", int moves = 0) {
  ChurnOptions options;
  options.model = gpu::Catalogue::Builtin().FindByName("A100-40GB");
  options.arrivals = 12'000;
  options.policy = policy;
  options.mix = mix;
  options.moves = moves;
  return options;
}

// The mean over three seeds, in percent.
double ComputeShare(ChurnOptions options) {
  double sum = 0;
  for (options.seed = 1; options.seed <= 3; ++options.seed) {
    sum += 100 * *RunChurn(options).value().compute.Share();
  }
  return sum / 3;
}

TEST(Churn, NosServesMoreThanBestBaseline) {
  for (const char* mix : {"uniform", "skew-big", "inference"}) {
    const double peer = ComputeShare(Short(ChurnPolicy::kLargestFreeRun, mix));
    const double still = ComputeShare(Short(ChurnPolicy::kNos, mix));
    const double moving = ComputeShare(Short(ChurnPolicy::kNos, mix, 2));
    EXPECT_GT(still, peer) << mix;
    EXPECT_GT(moving, still) << mix;
    EXPECT_GT(ComputeShare(Short(ChurnPolicy::kRepack, mix)) + 0.5, moving) << mix;
  }
  EXPECT_GT(ComputeShare(Short(ChurnPolicy::kNos)),
            ComputeShare(Short(ChurnPolicy::kLargestFreeRun)) + 2.5);
  EXPECT_GT(ComputeShare(Short(ChurnPolicy::kNos, "uniform", 2)),
            ComputeShare(Short(ChurnPolicy::kLargestFreeRun)) + 5);
}

// Devices are chosen as well as placements, and in kube-scheduler's order as badly.
TEST(Churn, ClaimsAreServedAsSlicesAre) {
  for (const char* mix : {"uniform", "inference"}) {
    ChurnOptions claims = Short(ChurnPolicy::kNos, mix);
    claims.claims = true;
    EXPECT_NEAR(ComputeShare(claims), ComputeShare(Short(ChurnPolicy::kNos, mix)), 0.3) << mix;
    claims.policy = ChurnPolicy::kFirstFit;
    EXPECT_EQ(ComputeShare(claims), ComputeShare(Short(ChurnPolicy::kFirstFit, mix))) << mix;
  }
}

TEST(Churn, MovesAreFew) {
  for (const char* mix : kMixes) {
    const ChurnReport still = RunChurn(Short(ChurnPolicy::kNos, mix)).value();
    const ChurnReport moving = RunChurn(Short(ChurnPolicy::kNos, mix, 2)).value();
    EXPECT_EQ(still.moves, 0);
    EXPECT_GT(moving.moves, 0);
    EXPECT_LT(moving.MovesPerAccepted(), 0.1) << mix;
  }
}

TEST(Churn, PoliciesSeeEqualRequests) {
  const ChurnReport reference = RunChurn(Short(ChurnPolicy::kNos)).value();
  EXPECT_EQ(reference.requests.offered, 10'000);
  for (const ChurnPolicy policy : kAllPolicies) {
    const ChurnReport report = RunChurn(Short(policy)).value();
    EXPECT_EQ(report.compute.offered, reference.compute.offered);
    for (size_t i = 0; i < report.profiles.size(); ++i) {
      EXPECT_EQ(report.by_profile[i].offered, reference.by_profile[i].offered);
    }
  }
}

TEST(Churn, EqualSeedGivesEqualReport) {
  ChurnOptions options = Short(ChurnPolicy::kNos, "inference", 2);
  const std::string first = WriteJson(ToJson(RunChurn(options).value()));
  EXPECT_EQ(WriteJson(ToJson(RunChurn(options).value())), first);
  options.seed = 2;
  EXPECT_NE(WriteJson(ToJson(RunChurn(options).value())), first);
}

TEST(Churn, RunsEveryModelWithEveryPolicy) {
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    for (const ChurnPolicy policy : kAllPolicies) {
      ChurnOptions options = Short(policy, "skew-small", policy == ChurnPolicy::kNos ? 2 : 0);
      options.model = model.get();
      options.arrivals = 1200;
      options.gpus = 5;
      const auto report = RunChurn(options);
      ASSERT_TRUE(report.ok()) << model->name() << ": " << report.status().message();
      EXPECT_GT(report->requests.accepted, 0);
    }
  }
}

TEST(Churn, ServesClaimsOnEveryModel) {
  for (const auto& model : gpu::Catalogue::Builtin().models()) {
    for (const ChurnPolicy policy : {ChurnPolicy::kNos, ChurnPolicy::kFirstFit}) {
      ChurnOptions options = Short(policy, "skew-small");
      options.model = model.get();
      options.arrivals = 1200;
      options.gpus = 5;
      options.claims = true;
      options.node_gpus = 2;
      const auto report = RunChurn(options);
      ASSERT_TRUE(report.ok()) << model->name() << ": " << report.status().message();
      EXPECT_GT(report->requests.accepted, 0);
    }
  }
}

TEST(Churn, AcceptsAllRequestsAtLowLoad) {
  ChurnOptions options = Short(ChurnPolicy::kFirstFit);
  options.load = 0.1;
  EXPECT_EQ(RunChurn(options).value().requests.Share(), 1);
}

TEST(Churn, RejectsInvalidOptions) {
  const auto error = [](auto change) {
    ChurnOptions options = Short(ChurnPolicy::kNos);
    change(options);
    return RunChurn(options).status().message();
  };
  EXPECT_THAT(error([](auto& o) { o.gpus = 0; }), HasSubstr("gpus"));
  EXPECT_THAT(error([](auto& o) { o.load = 0; }), HasSubstr("load"));
  EXPECT_THAT(error([](auto& o) { o.arrivals = 5; }), HasSubstr("arrivals"));
  EXPECT_THAT(error([](auto& o) { o.moves = 3; }), HasSubstr("moves"));
  EXPECT_THAT(error([](auto& o) { o.model = nullptr; }), HasSubstr("model"));
  EXPECT_THAT(error([](auto& o) { o.mix = "/no/such/file"; }), HasSubstr("/no/such/file"));
  EXPECT_THAT(error([](auto& o) {
                o.policy = ChurnPolicy::kBestFit;
                o.moves = 1;
              }),
              HasSubstr("best-fit"));
  EXPECT_THAT(error([](auto& o) {
                o.policy = ChurnPolicy::kBestFit;
                o.claims = true;
              }),
              HasSubstr("best-fit"));
  EXPECT_THAT(error([](auto& o) {
                o.moves = 1;
                o.claims = true;
              }),
              HasSubstr("move"));
  EXPECT_THAT(error([](auto& o) {
                o.node_gpus = 17;
                o.claims = true;
              }),
              HasSubstr("16"));
  EXPECT_THAT(ParsePolicy("bestfit").status().message(), HasSubstr("best-fit"));
  EXPECT_EQ(ParsePolicy("repack").value(), ChurnPolicy::kRepack);
}

TEST(Churn, ReportsAsTextAndJson) {
  const ChurnReport report = RunChurn(Short(ChurnPolicy::kNos, "bimodal", 1)).value();
  const Json json = ToJson(report);
  EXPECT_EQ(Find(json, "acceptedComputeShare")->to_number<double>(), report.compute.Share());
  EXPECT_EQ(Find(json, "moves")->to_number<int64_t>(), report.moves);
  EXPECT_EQ(FindString(Find(json, "profiles")->get_array()[1], "profile"), "7g.40gb");
  EXPECT_THAT(ToText(report), HasSubstr("7g.40gb"));
  EXPECT_THAT(ToText(report), HasSubstr("moves, "));
}

TEST(Churn, ShareIsUnsetIfNothingWasOffered) {
  ChurnOptions options = Short(ChurnPolicy::kNos);
  ChurnReport report = RunChurn(options).value();
  report.by_profile[0] = {};
  EXPECT_TRUE(Find(Find(ToJson(report), "profiles")->get_array()[0], "acceptedShare")->is_null());
  EXPECT_THAT(Split(ToText(report), '\n'), Contains("1g.5gb   0        0         -"));
}

TEST(Mix, NamedMixAdaptsToModel) {
  const gpu::Model& a30 = *gpu::Catalogue::Builtin().FindByName("A30");
  const Mix mix =
      LoadMix("skew-small", a30).value();  // 80/10/5/3/2; this model has no 3g and no 7g
  ASSERT_EQ(mix.size(), 3U);
  EXPECT_EQ(mix[0].weight, 80);
  EXPECT_EQ(mix[1].weight, 10);
  EXPECT_EQ(mix[2].weight, 10);
}

TEST(Mix, ReadsAFile) {
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  const Mix mix = ParseMix("1g.5gb: 60\nnvidia.com/mig-1g.10gb: 2.5\n", "mix.yaml", model).value();
  ASSERT_EQ(mix.size(), 2U);
  EXPECT_EQ(mix[1].weight, 2.5);
  for (const char* bad : {"", "7", "[1g.5gb]", "1g.6gb: 1", "1g.5gb: 0", "1g.5gb: x",
                          "1g.5gb: .inf", "{1g.5gb: 1, nvidia.com/mig-1g.5gb: 1}"}) {
    EXPECT_THAT(ParseMix(bad, "mix.yaml", model).status().message(), HasSubstr("mix.yaml")) << bad;
  }
}

// Instances per profile of all pairs of layouts.
std::set<std::vector<int64_t>> PackableOnTwo(const gpu::Model& model,
                                             const std::vector<gpu::ProfileId>& profiles) {
  const gpu::LayoutTable& table = model.layouts();
  std::set<std::vector<int64_t>> one, two;
  for (size_t s = 0; s < table.size(); ++s) {
    uint64_t rest = table.Members(static_cast<gpu::LayoutId>(s));
    std::vector<int64_t> counts(model.profiles().size());
    for (const gpu::ProfileId p : profiles) {
      counts[p] = std::popcount(rest & table.PlacementsOf(p));
      rest &= ~table.PlacementsOf(p);
    }
    if (rest == 0) one.insert(counts);
  }
  for (const auto& a : one) {
    for (const auto& b : one) {
      auto sum = a;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
      two.insert(sum);
    }
  }
  return two;
}

void CompareOnTwo(const gpu::Model& model) {
  const auto profiles = gpu::PlainProfiles(model);
  const PackingTest test = PackingTest::For(model, LoadMix("uniform", model).value()).value();
  const auto packable = PackableOnTwo(model, profiles);
  std::vector<int64_t> counts(model.profiles().size());
  // Enumerates all combinations up to one more of each profile than two GPUs hold.
  for (;;) {
    ASSERT_EQ(test.Fits(counts, 2), packable.contains(counts));
    size_t i = 0;
    for (; i < profiles.size(); ++i) {
      const int most = 2 * model.layouts().Copies(gpu::LayoutTable::kEmpty, profiles[i]) + 1;
      if (++counts[profiles[i]] <= most) break;
      counts[profiles[i]] = 0;
    }
    if (i == profiles.size()) return;
  }
}

TEST(PackingTest, AgreesWithEveryPackingOfTwoGpus) {
  for (const char* name : {"A100-40GB", "A30", "RTX-PRO-6000"}) {
    CompareOnTwo(*gpu::Catalogue::Builtin().FindByName(name));
  }
}

TEST(PackingTest, RejectsUnsupportedMixes) {
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  const Mix mix = ParseMix("{1g.5gb: 1, 1g.10gb: 1}", "mix", model).value();
  EXPECT_EQ(PackingTest::For(model, mix).status().code(), Code::kInvalid);

  const auto narrowed =
      gpu::Catalogue::Load("remove: [{model: A30, geometries: [{1g.6gb: 1, 2g.12gb: 1}]}]").value();
  const gpu::Model& a30 = *narrowed.FindByName("A30");
  EXPECT_FALSE(PackingTest::For(a30, LoadMix("uniform", a30).value()).ok());
}

}  // namespace
}  // namespace nos::study
