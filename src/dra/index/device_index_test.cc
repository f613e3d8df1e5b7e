#include "dra/device_index.h"

#include <gtest/gtest.h>

#include "dra/context.h"
#include "dra/testing/table_expressions.h"

namespace nos::dra {
namespace {

using cluster::ClusterSnapshot;
using Kind = AllocationOutcome::Kind;

std::shared_ptr<const ResourceSlice> SliceOf(const std::string& name, const std::string& node,
                                             int devices) {
  JsonArray list;
  for (int i = 0; i < devices; ++i) list.push_back(Json{{"name", "d" + std::to_string(i)}});
  Json spec{{"driver", "d.io"},
            {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", list}};
  if (node.empty()) {
    spec.get_object()["allNodes"] = true;
  } else {
    spec.get_object()["nodeName"] = node;
  }
  auto slice = std::make_shared<ResourceSlice>();
  EXPECT_TRUE(ReadResourceSlice(Json{{"metadata", {{"name", name}}}, {"spec", spec}}, *slice).ok());
  return slice;
}

std::shared_ptr<const ResourceClaim> ClaimOf(const std::string& name, int64_t count = 1) {
  auto claim = std::make_shared<ResourceClaim>();
  claim->ns = "x";
  claim->name = claim->uid = name;
  ExactRequest request;
  request.device_class = "any";
  request.mode = "ExactCount";
  request.count = count;
  claim->requests = {{"r", request, {}}};
  return claim;
}

std::shared_ptr<const cluster::Pod> PodOf(const std::string& name, const std::string& claim) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "x";
  pod->meta.name = pod->meta.uid = name;
  pod->claims = {{"gpu", claim, "", false}};
  return pod;
}

// Nodes "n" and "m". Node n has two devices.
class DeviceIndexTest : public ::testing::Test {
 protected:
  DeviceIndexTest() {
    for (const char* name : {"m", "n"}) {
      auto node = std::make_shared<cluster::Node>();
      node->meta.name = name;
      snapshot_.SetNode(node);
    }
    index_.SetBase(&snapshot_);
    index_.SetSlice("s", SliceOf("s", "n", 2));
  }

  AllocationOutcome Try(const std::shared_ptr<const ResourceClaim>& claim,
                        const cluster::NodeInfo& node) {
    const PreparedClaims prepared({claim}, FindClass(), index_.features());
    return index_.Allocate(prepared, node, FindClass());
  }
  Kind Fits(const std::shared_ptr<const ResourceClaim>& claim, const std::string& node = "n") {
    return Try(claim, *snapshot_.Find(node)).kind;
  }
  static dra::FindClass FindClass() {
    return [](const std::string&) {
      static const auto any = [] {
        auto made = std::make_shared<DeviceClass>();
        made->name = "any";
        return std::shared_ptr<const DeviceClass>(std::move(made));
      }();
      return any;
    };
  }
  std::shared_ptr<const ResourceClaim> Allocated(const std::shared_ptr<const ResourceClaim>& claim,
                                                 const std::string& pod) {
    auto allocated = std::make_shared<ResourceClaim>(*claim);
    allocated->allocation = Try(claim, *snapshot_.Find("n")).allocations.at(0);
    allocated->reserved_for = {{"", "pods", pod, pod}};
    return allocated;
  }

  ClusterSnapshot snapshot_;
  DeviceIndex index_{Features::Of(37), std::make_shared<const TableExpressions>()};
};

TEST_F(DeviceIndexTest, ClaimsHoldDevicesUntilTheyAreReleased) {
  EXPECT_EQ(Fits(ClaimOf("a", 2)), Kind::kAllocated);
  EXPECT_EQ(Fits(ClaimOf("a", 2), "m"), Kind::kDoesNotFit);
  const auto affected = index_.SetClaim("x/a", Allocated(ClaimOf("a"), "p"));
  EXPECT_FALSE(affected.all);
  EXPECT_EQ(affected.nodes, std::vector<std::string>{"n"});
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit);
  EXPECT_EQ(index_.SetClaim("x/a", nullptr).nodes, std::vector<std::string>{"n"});
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kAllocated);
}

TEST_F(DeviceIndexTest, PrefetchedExpressionsAreNotEvaluatedAgain) {
  const auto expressions = std::make_shared<TableExpressions>();
  DeviceIndex index(Features::Of(37), expressions);
  cluster::ClusterContext context;
  context.device_slices.Set("s", SliceOf("s", "n", 2));
  auto rule = std::make_shared<DeviceTaintRule>();
  rule->name = "elsewhere";
  rule->selector.emplace().driver = "other.io";
  context.device_taint_rules.Set("elsewhere", rule);
  index.Reset(context);
  const dra::FindClass find_class = [](const std::string&) {
    auto of_driver = std::make_shared<DeviceClass>();
    of_driver->selectors = {R"(device.driver == "d.io")"};
    return of_driver;
  };
  std::vector<PreparedClaims> claims;
  claims.emplace_back(std::vector{ClaimOf("a")}, find_class, index.features());
  const cluster::NodeInfo& node = *snapshot_.Find("n");
  index.Prefetch(*node.node, claims);
  const int evaluated = expressions->evaluated();
  EXPECT_GT(evaluated, 0);
  index.Reset(context);  // what is known already stays
  EXPECT_EQ(index.Allocate(claims.front(), node, find_class).kind, Kind::kAllocated);
  EXPECT_EQ(expressions->evaluated(), evaluated);
}

TEST_F(DeviceIndexTest, AssumptionOutlastsOtherChangesOfTheClaim) {
  const auto claim = ClaimOf("a");
  index_.SetClaim("x/a", claim);
  const auto stored = Allocated(claim, "p");
  index_.Assume("x/a", *stored->allocation, "p");
  auto with_finalizer = std::make_shared<ResourceClaim>(*claim);
  with_finalizer->finalizers = {"f"};
  EXPECT_TRUE(index_.SetClaim("x/a", with_finalizer).nodes.empty());
  EXPECT_NE(index_.FindAssumed("x/a"), nullptr);
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit);
  EXPECT_TRUE(index_.SetClaim("x/a", stored).nodes.empty()) << "stored as assumed: nothing changes";
  EXPECT_EQ(index_.FindAssumed("x/a"), nullptr);
  index_.Withdraw("x/a");
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit) << "the API server has the allocation";
}

TEST_F(DeviceIndexTest, SuccessorOfTheSameNameEndsAnAssumption) {
  index_.SetClaim("x/a", ClaimOf("a"));
  index_.Assume("x/a", *Allocated(ClaimOf("a"), "p")->allocation, "p");
  index_.SetDoubtful("x/a");
  EXPECT_TRUE(index_.FindAssumed("x/a")->doubtful);
  auto successor = std::make_shared<ResourceClaim>(*ClaimOf("a"));
  successor->uid = "later";
  EXPECT_EQ(index_.SetClaim("x/a", successor).nodes, std::vector<std::string>{"n"});
  EXPECT_EQ(index_.FindAssumed("x/a"), nullptr);
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kAllocated);
}

TEST_F(DeviceIndexTest, WithdrawnAssumptionFreesTheDevices) {
  index_.SetClaim("x/a", ClaimOf("a"));
  index_.Assume("x/a", *Allocated(ClaimOf("a"), "p")->allocation, "p");
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit);
  index_.Withdraw("x/a");
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kAllocated);
}

TEST_F(DeviceIndexTest, PodsThatLeaveACopyReleaseTheirClaimsThere) {
  index_.SetClaim("x/a", Allocated(ClaimOf("a"), "p"));
  ASSERT_TRUE(snapshot_.Bind(PodOf("p", "a"), "n").ok());
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit);
  ClusterSnapshot without = snapshot_;
  ASSERT_TRUE(without.Unbind(*PodOf("p", "a"), "n").ok());
  EXPECT_EQ(Try(ClaimOf("b", 2), *without.Find("n")).kind, Kind::kAllocated);
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit) << "the base is unchanged";
}

TEST_F(DeviceIndexTest, SharedClaimIsHeldUntilItsLastUserLeaves) {
  auto shared = std::make_shared<ResourceClaim>(*Allocated(ClaimOf("a"), "p"));
  shared->reserved_for.push_back({"", "pods", "q", "q"});
  index_.SetClaim("x/a", shared);
  for (const char* pod : {"p", "q"}) ASSERT_TRUE(snapshot_.Bind(PodOf(pod, "a"), "n").ok());
  ClusterSnapshot without = snapshot_;
  ASSERT_TRUE(without.Unbind(*PodOf("p", "a"), "n").ok());
  EXPECT_EQ(Try(ClaimOf("b", 2), *without.Find("n")).kind, Kind::kDoesNotFit);
  ASSERT_TRUE(without.Unbind(*PodOf("q", "a"), "n").ok());
  EXPECT_EQ(Try(ClaimOf("b", 2), *without.Find("n")).kind, Kind::kAllocated);
}

// The second user is assumed: the claim does not name it yet.
TEST_F(DeviceIndexTest, ClaimIsHeldByAnotherPodOnTheNodeThatUsesIt) {
  index_.SetClaim("x/a", Allocated(ClaimOf("a"), "p"));
  for (const char* pod : {"p", "q"}) ASSERT_TRUE(snapshot_.Bind(PodOf(pod, "a"), "n").ok());
  ClusterSnapshot without = snapshot_;
  ASSERT_TRUE(without.Unbind(*PodOf("p", "a"), "n").ok());
  EXPECT_EQ(Try(ClaimOf("b", 2), *without.Find("n")).kind, Kind::kDoesNotFit);
}

TEST_F(DeviceIndexTest, PodsThatComeToACopyTakeDevicesFirst) {
  index_.SetClaim("x/a", ClaimOf("a"));
  ClusterSnapshot with = snapshot_;
  ASSERT_TRUE(with.Bind(PodOf("p", "a"), "n").ok());
  EXPECT_EQ(Try(ClaimOf("b", 2), *with.Find("n")).kind, Kind::kDoesNotFit);
  EXPECT_EQ(Try(ClaimOf("b", 1), *with.Find("n")).kind, Kind::kAllocated);
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kAllocated);
}

// A claim as the API server stores it, for one device that it may share.
std::shared_ptr<const ResourceClaim> StoredClaim(const std::string& name) {
  const Json exactly{{"deviceClassName", "any"},
                     {"allocationMode", "ExactCount"},
                     {"count", 1},
                     {"capacity", {{"requests", {{"memory", "10"}}}}}};
  auto claim = std::make_shared<ResourceClaim>();
  EXPECT_TRUE(
      ReadResourceClaim(
          Json{{"metadata", {{"namespace", "x"}, {"name", name}, {"uid", name}}},
               {"spec",
                {{"devices", {{"requests", JsonArray{{{"name", "r"}, {"exactly", exactly}}}}}}}}},
          *claim)
          .ok());
  return claim;
}

std::shared_ptr<const ResourceSlice> SharedDevice(const std::string& memory) {
  const Json device{{"name", "d0"},
                    {"allowMultipleAllocations", true},
                    {"capacity", {{"memory", {{"value", memory}}}}}};
  auto slice = std::make_shared<ResourceSlice>();
  EXPECT_TRUE(ReadResourceSlice(
                  Json{{"metadata", {{"name", "s"}}},
                       {"spec",
                        {{"driver", "d.io"},
                         {"nodeName", "n"},
                         {"pool", {{"name", "s"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                         {"devices", JsonArray{device}}}}},
                  *slice)
                  .ok());
  return slice;
}

// The scheduler asks for one pod and reserves for another of the same kind.
TEST_F(DeviceIndexTest, RememberedAnswerBecomesThatOfTheClaim) {
  index_.SetSlice("s", SharedDevice("40"));
  AllocationOptions options;
  options.ranking = &index_.ranking();
  const auto ask = [&](const std::string& name) {
    const PreparedClaims prepared({StoredClaim(name)}, FindClass(), index_.features());
    AllocationOutcome outcome =
        index_.Allocate(prepared, *snapshot_.Find("n"), FindClass(), options);
    return outcome.allocations.at(0).devices.at(0).share_id;
  };
  const std::string of_a = ask("a");
  const std::string of_b = ask("b");
  EXPECT_NE(of_a, of_b);
  DeviceIndex other(Features::Of(37), std::make_shared<const TableExpressions>());
  other.SetBase(&snapshot_);
  other.SetSlice("s", SharedDevice("40"));
  const PreparedClaims prepared({StoredClaim("b")}, FindClass(), other.features());
  EXPECT_EQ(other.Allocate(prepared, *snapshot_.Find("n"), FindClass())
                .allocations.at(0)
                .devices.at(0)
                .share_id,
            of_b);
}

TEST_F(DeviceIndexTest, RememberedAnswerEndsWithEachChange) {
  index_.SetSlice("s", SharedDevice("30"));
  AllocationOptions options;
  options.ranking = &index_.ranking();
  const auto fits = [&] {
    const PreparedClaims prepared({StoredClaim("a")}, FindClass(), index_.features());
    return index_.Allocate(prepared, *snapshot_.Find("n"), FindClass(), options).kind ==
           Kind::kAllocated;
  };
  for (const char* name : {"b", "c", "d"}) {
    ASSERT_TRUE(fits()) << name;
    const auto claim = StoredClaim(name);
    index_.SetClaim(claim->Key(), claim);
    const PreparedClaims prepared({claim}, FindClass(), index_.features());
    index_.Assume(
        claim->Key(),
        index_.Allocate(prepared, *snapshot_.Find("n"), FindClass(), options).allocations.at(0),
        "pod");
  }
  EXPECT_FALSE(fits());
  index_.Withdraw("x/c");
  EXPECT_TRUE(fits());
  index_.SetSlice("s", SharedDevice("20"));
  EXPECT_FALSE(fits());
  index_.SetSlice("s", SharedDevice("30"));
  EXPECT_TRUE(fits());
  index_.SetSlice("s", nullptr);
  EXPECT_FALSE(fits());
}

TEST_F(DeviceIndexTest, DevicesOfSeveralNodesAffectAll) {
  EXPECT_TRUE(index_.SetSlice("net", SliceOf("net", "", 1)).all);
  EXPECT_EQ(index_.SetSlice("s", SliceOf("s", "m", 1)).nodes, (std::vector<std::string>{"n", "m"}));
  EXPECT_TRUE(index_.SetClaim("x/a", Allocated(ClaimOf("a"), "p")).all);
}

TEST_F(DeviceIndexTest, ResetTakesOverAllTables) {
  index_.SetClaim("x/gone", Allocated(ClaimOf("gone"), "p"));
  cluster::ClusterContext context;
  context.device_slices.Set("s", SliceOf("s", "n", 1));
  context.device_claims.Set("x/a", ClaimOf("a"));
  index_.Reset(context);
  EXPECT_EQ(index_.FindClaim("x/gone"), nullptr);
  EXPECT_NE(index_.FindClaim("x/a"), nullptr);
  EXPECT_EQ(Fits(ClaimOf("b", 1)), Kind::kAllocated);
  EXPECT_EQ(Fits(ClaimOf("b", 2)), Kind::kDoesNotFit);
}

TEST(NodeOfAllocationTest, NamesTheOnlyNode) {
  Allocation allocation;
  EXPECT_EQ(NodeOf(allocation), "");
  cluster::NodeSelectorTerm term;
  term.match_fields = {{"metadata.name", "In", {"n"}}};
  allocation.node_selector = {term};
  EXPECT_EQ(NodeOf(allocation), "n");
  allocation.node_selector = {term, term};
  EXPECT_EQ(NodeOf(allocation), "");
  term.match_fields = {{"metadata.name", "NotIn", {"n"}}};
  allocation.node_selector = {term};
  EXPECT_EQ(NodeOf(allocation), "") << "all nodes but this one";
}

}  // namespace
}  // namespace nos::dra
