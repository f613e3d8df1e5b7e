#include "kube/leader_election.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"

namespace nos::kube {
namespace {

using std::chrono::seconds;

class LeaderElectionTest : public testing::Test {
 protected:
  static LeaderElector Candidate(std::string identity) {
    return LeaderElector({.ns = "nos", .name = "partitioner", .identity = std::move(identity)});
  }
  void After(Duration time) { now_ += time; }
  const Json& Lease() { return *api_.Find("leases", "nos/partitioner"); }

  FakeApi api_;
  Client client_{api_};
  Time now_{seconds(1'800'000'000)};
  LeaderElector a_ = Candidate("a"), b_ = Candidate("b");
};

TEST_F(LeaderElectionTest, FirstCandidateLeadsAndSecondWaits) {
  a_.Step(client_, now_);
  b_.Step(client_, now_);
  EXPECT_TRUE(a_.Leads(now_));
  EXPECT_FALSE(b_.Leads(now_));
  EXPECT_EQ(b_.holder(), "a");
  EXPECT_EQ(FindString(Lease(), "spec", "renewTime"), "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(a_.NextDue(), now_ + seconds(2));
}

TEST_F(LeaderElectionTest, LeaderKeepsLeaseByRenewing) {
  for (int i = 0; i < 60; ++i) {
    a_.Step(client_, now_);
    b_.Step(client_, now_);
    EXPECT_TRUE(a_.Leads(now_));
    EXPECT_FALSE(b_.Leads(now_));
    After(seconds(2));
  }
  EXPECT_EQ(*Find(Lease(), "spec", "leaseTransitions"), 0);
}

TEST_F(LeaderElectionTest, SuccessorAcquiresExpiredLeaseOfDeadLeader) {
  a_.Step(client_, now_);
  After(seconds(5));
  b_.Step(client_, now_);  // b's own clock for the lease starts when b first sees it
  After(seconds(14));
  b_.Step(client_, now_);
  EXPECT_FALSE(b_.Leads(now_));
  EXPECT_FALSE(a_.Leads(now_)) << "gave up before anybody could follow";
  After(seconds(2));
  b_.Step(client_, now_);
  EXPECT_TRUE(b_.Leads(now_));
  EXPECT_EQ(*Find(Lease(), "spec", "leaseTransitions"), 1);
}

TEST_F(LeaderElectionTest, DisconnectedLeaderStopsBeforeLeaseExpires) {
  a_.Step(client_, now_);
  api_.intercept = [](const ApiRequest&) { return Status(Code::kUnavailable, "cut off"); };
  for (int i = 0; i < 5; ++i) {
    After(seconds(2));
    a_.Step(client_, now_);
  }
  EXPECT_FALSE(a_.Leads(now_));
  EXPECT_EQ(a_.error().code(), Code::kUnavailable);
  api_.intercept = nullptr;
  After(seconds(2));
  a_.Step(client_, now_);
  EXPECT_TRUE(a_.Leads(now_)) << "nobody has taken it meanwhile";
}

// A real API server rejects such values: both fields are int32 there.
TEST_F(LeaderElectionTest, ToleratesInvalidNumbersInLease) {
  a_.Step(client_, now_);
  Json absurd = Lease();
  absurd.as_object()["kind"] = "Lease";
  MakeObject(absurd, "spec")["leaseDurationSeconds"] = INT64_MAX;
  MakeObject(absurd, "spec")["leaseTransitions"] = INT64_MAX;
  api_.Put(absurd);
  b_.Step(client_, now_);
  EXPECT_FALSE(b_.Leads(now_)) << "it lasts for long";
  MakeObject(absurd, "spec")["holderIdentity"] = "";
  api_.Put(absurd);
  b_.Step(client_, now_ + seconds(3));
  EXPECT_TRUE(b_.Leads(now_ + seconds(3)));
  EXPECT_EQ(*Find(Lease(), "spec", "leaseTransitions"), INT32_MAX);
}

TEST_F(LeaderElectionTest, AcquiresReleasedLeaseAtOnce) {
  a_.Step(client_, now_);
  a_.Release(client_);
  EXPECT_FALSE(a_.Leads(now_));
  b_.Step(client_, now_);
  EXPECT_TRUE(b_.Leads(now_));
}

TEST_F(LeaderElectionTest, OnlyOneOfTwoConcurrentCandidatesLeads) {
  a_.Step(client_, now_);
  LeaderElector c = Candidate("c");
  b_.Step(client_, now_);
  c.Step(client_, now_);
  After(seconds(16));
  // b reads the lease, c acquires it, b's own attempt comes too late.
  bool inside = false;
  api_.intercept = [&](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (request.method == "PATCH" && !inside) {
      inside = true;
      c.Step(client_, now_);
    }
    return std::nullopt;
  };
  b_.Step(client_, now_);
  EXPECT_FALSE(b_.Leads(now_));
  EXPECT_TRUE(c.Leads(now_));
  EXPECT_EQ(b_.error().code(), Code::kConflict);
}

TEST_F(LeaderElectionTest, LeaderStopsAfterLosingLease) {
  a_.Step(client_, now_);
  Json stolen = Lease();
  MakeObject(stolen, "spec")["holderIdentity"] = "z";
  stolen.as_object()["kind"] = "Lease";
  api_.Put(stolen);
  After(seconds(2));
  a_.Step(client_, now_);
  EXPECT_FALSE(a_.Leads(now_));
}

}  // namespace
}  // namespace nos::kube
