// Writes to the real API server: refusals and their codes.
#include <fmt/core.h>

#include "contract.h"

namespace nos::kube {
namespace {

const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const Resource kBudgets{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true};

class WriteContract : public ContractTest {
 protected:
  void AwaitServiceAccount() {
    Until([&] { return client_->Get(kServiceAccounts, ns_, "default").ok(); });
  }
  static Json PodOf(std::string_view name, std::string_view scheduler) {
    return {{"metadata", {{"name", name}, {"labels", {{"app", "web"}}}}},
            {"spec",
             {{"schedulerName", scheduler},
              {"terminationGracePeriodSeconds", 0},
              {"containers", {{{"name", "main"}, {"image", "example/any:1"}}}}}}};
  }
  // Server-side apply as field manager `manager`.
  Result<Json> Apply(const Json& object, std::string manager, bool force = false) {
    const std::string name(FindString(object, "metadata", "name"));
    return Send({"PATCH",
                 PathOf(kConfigMaps, ns_, name),
                 {{"fieldManager", std::move(manager)}, {"force", force ? "true" : "false"}},
                 "application/apply-patch+yaml",
                 "",
                 object});
  }
  Result<Json> Evict(std::string_view pod) {
    return Send({"POST",
                 PathOf(kPods, ns_, pod, "eviction"),
                 {},
                 "application/json",
                 "",
                 Json{{"apiVersion", "policy/v1"},
                      {"kind", "Eviction"},
                      {"metadata", {{"name", pod}, {"namespace", ns_}}}}});
  }
};

TEST_F(WriteContract, SecondOfTwoUpdatesConflicts) {
  Json mine = Make(kConfigMaps, RecordOf("a", "1")), theirs = mine;
  MakeObject(theirs, "data")["value"] = "2";
  ASSERT_TRUE(client_->Update(kConfigMaps, ns_, theirs).ok());
  MakeObject(mine, "data")["value"] = "3";
  EXPECT_EQ(client_->Update(kConfigMaps, ns_, mine).status().code(), Code::kConflict);
  EXPECT_EQ(FindString(*client_->Get(kConfigMaps, ns_, "a"), "data", "value"), "2");
}

TEST_F(WriteContract, ReportsExistingAndMissingObjects) {
  Make(kConfigMaps, RecordOf("a"));
  EXPECT_EQ(client_->Create(kConfigMaps, ns_, RecordOf("a")).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(client_->Delete(kConfigMaps, ns_, "b").code(), Code::kNotFound);
  EXPECT_EQ(client_->Create(kConfigMaps, ns_, RecordOf("No Name")).status().code(), Code::kInvalid);
}

TEST_F(WriteContract, DeleteRespectsPreconditions) {
  Make(kConfigMaps, RecordOf("a"));
  const Json other = {{"preconditions", {{"uid", "somebody-else"}}}};
  EXPECT_EQ(client_->Delete(kConfigMaps, ns_, "a", other).code(), Code::kConflict);
  EXPECT_TRUE(client_->Get(kConfigMaps, ns_, "a").ok());
}

TEST_F(WriteContract, MergePatchChangesOnlyNamedFields) {
  Make(kConfigMaps, RecordOf("a", "1"));
  const Json patch = {{"metadata", {{"annotations", {{"nos.nebuly.com/x", "y"}}}}}};
  const auto patched = client_->Patch(kConfigMaps, ns_, "a", PatchType::kMerge, patch);
  ASSERT_TRUE(patched.ok()) << patched.status().ToString();
  EXPECT_EQ(FindString(*patched, "data", "value"), "1");
  EXPECT_EQ(FindString(*patched, "metadata", "annotations", "nos.nebuly.com/x"), "y");
}

TEST_F(WriteContract, ServerSideApplyKeepsFieldsOfOtherManagers) {
  ASSERT_TRUE(Apply(RecordOf("a", "1"), "nos").ok());
  EXPECT_EQ(Apply(RecordOf("a", "2"), "other").status().code(), Code::kConflict);
  ASSERT_TRUE(Apply(RecordOf("a", "2"), "other", true).ok());
  // Fields dropped by nos without another owner are removed; fields with another owner stay.
  Json bare = RecordOf("a");
  bare.as_object().erase("data");
  const auto applied = Apply(bare, "nos");
  ASSERT_TRUE(applied.ok()) << applied.status().ToString();
  EXPECT_EQ(FindString(*applied, "data", "value"), "2");
}

TEST_F(WriteContract, PodIsBoundAtMostOnce) {
  AwaitServiceAccount();
  Make(kPods, PodOf("a", "nobody"));
  EXPECT_TRUE(client_->Bind(ns_, "a", "kwok-0").ok());
  EXPECT_EQ(client_->Bind(ns_, "a", "kwok-1").code(), Code::kConflict);
  Until([&] { return FindString(*client_->Get(kPods, ns_, "a"), "status", "phase") == "Running"; });
}

TEST_F(WriteContract, EvictionRespectsDisruptionBudget) {
  AwaitServiceAccount();
  Make(kPods, PodOf("a", "default-scheduler"));
  Make(kBudgets,
       {{"metadata", {{"name", "web"}}},
        {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "web"}}}}}}}});
  const auto allowed = [&](int count) {
    const auto budget = client_->Get(kBudgets, ns_, "web");
    const Json* healthy = Find(*budget, "status", "currentHealthy");
    const Json* now = Find(*budget, "status", "disruptionsAllowed");
    return healthy != nullptr && *healthy == count + 1 && *now == count;
  };
  Until([&] { return allowed(0); });
  const auto refused = Evict("a");
  EXPECT_EQ(refused.status().code(), Code::kUnavailable) << refused.status().ToString();
  EXPECT_NE(refused.status().message().find("disruption budget"), std::string::npos)
      << refused.status().ToString();
  Make(kPods, PodOf("b", "default-scheduler"));
  Until([&] { return allowed(1); });
  EXPECT_TRUE(Evict("a").ok());
  Until([&] { return client_->Get(kPods, ns_, "a").status().code() == Code::kNotFound; });
}

}  // namespace
}  // namespace nos::kube
