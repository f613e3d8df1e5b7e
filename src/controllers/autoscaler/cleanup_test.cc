#include "controllers/cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/autoscaler/scaling_signal.h"
#include "controllers/relocations.h"
#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Time kNow{std::chrono::seconds(1'800'000'000)};

class CleanUpTest : public ::testing::Test {
 protected:
  void PutPod(const std::string& ns, const std::string& name, std::string_view label) {
    JsonObject labels;
    labels[label] = "r-1";
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", ns}, {"name", name}, {"uid", "u-" + name}, {"labels", labels}}}});
  }
  void PutNode(const std::string& name, JsonObject annotations, JsonArray conditions = {}) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}, {"annotations", std::move(annotations)}}},
              {"spec", {{"unschedulable", true}}},
              {"status", {{"conditions", std::move(conditions)}}}});
  }
  static std::string RemovalMark(bool was_cordoned) {
    Removal removal;
    removal.pool = "a100";
    removal.id = "r-1";
    removal.since = kNow;
    removal.was_cordoned = was_cordoned;
    return WriteRemoval(removal);
  }
  std::vector<std::string> CleanUpAll(bool dry_run = false) {
    std::vector<std::string> changes;
    status_ = CleanUp({.namespaces = {"nos", "places"}, .dry_run = dry_run}, client_,
                      [&](const std::string& change) { changes.push_back(change); });
    return changes;
  }
  const Json& Node(const std::string& name) const { return *api_.Find("nodes", name); }
  bool IsCordoned(const std::string& name) const {
    const Json* cordoned = nos::Find(Node(name), "spec", "unschedulable");
    return cordoned != nullptr && *cordoned == Json(true);
  }

  kube::FakeApi api_;
  kube::Client client_{api_};
  Status status_;
};

TEST_F(CleanUpTest, DeletesPodsOfNosInItsNamespacesOnly) {
  PutPod("nos", "place-r-1-0", kPlaceholder);
  PutPod("places", "nos-demand-a-0", kDemandOf);
  PutPod("places", "other", "app");
  PutPod("ml", "forged", kPlaceholder);
  EXPECT_THAT(CleanUpAll(),
              ElementsAre("deleted Pod nos/place-r-1-0", "deleted Pod places/nos-demand-a-0"));
  EXPECT_TRUE(status_.ok()) << status_.message();
  EXPECT_NE(api_.Find("pods", "places/other"), nullptr);
  EXPECT_NE(api_.Find("pods", "ml/forged"), nullptr);
  EXPECT_THAT(CleanUpAll(), IsEmpty());
}

TEST_F(CleanUpTest, UncordonsOnlyWhatNosCordoned) {
  const MovesAway moves{"r-2", "ml/big", kNow, false};
  PutNode("emptied", {{kRemoval, RemovalMark(false)}, {"theirs", "x"}});
  PutNode("left", {{kMovesAway, WriteMovesAway(moves)}, {kMovedFrom, "{}"}});
  PutNode("theirs", {{kRemoval, RemovalMark(true)}});
  PutNode("unreadable", {{kRemoval, "{}"}});
  PutNode("plain", {});
  EXPECT_EQ(CleanUpAll().size(), 4U);
  EXPECT_TRUE(status_.ok()) << status_.message();
  EXPECT_FALSE(IsCordoned("emptied"));
  EXPECT_FALSE(IsCordoned("left"));
  for (const char* name : {"theirs", "unreadable", "plain"}) EXPECT_TRUE(IsCordoned(name)) << name;
  EXPECT_EQ(WriteJson(*nos::Find(Node("emptied"), "metadata", "annotations")), R"({"theirs":"x"})");
  EXPECT_THAT(CleanUpAll(), IsEmpty());
}

TEST_F(CleanUpTest, RemovesConditionsOfNosAndKeepsOthers) {
  PutNode("gpu-1", {{kRemoval, RemovalMark(false)}},
          {{{"type", "nos.nebuly.com/GpusHealthy"}, {"status", "True"}},
           {{"type", "Ready"}, {"status", "True"}}});
  EXPECT_THAT(CleanUpAll(), ElementsAre("removed marks and cordon and conditions of Node gpu-1"));
  EXPECT_TRUE(status_.ok()) << status_.message();
  EXPECT_EQ(WriteJson(*nos::Find(Node("gpu-1"), "status", "conditions")),
            R"([{"type":"Ready","status":"True"}])");
  EXPECT_FALSE(IsCordoned("gpu-1"));
}

TEST_F(CleanUpTest, DryRunChangesNothing) {
  PutPod("nos", "place-r-1-0", kPlaceholder);
  PutNode("gpu-1", {{kRemoval, RemovalMark(false)}});
  EXPECT_THAT(CleanUpAll(true), ElementsAre("would delete Pod nos/place-r-1-0",
                                            "would remove marks and cordon of Node gpu-1"));
  EXPECT_THAT(api_.writes, IsEmpty());
}

TEST_F(CleanUpTest, RepeatsWritesThatConflict) {
  PutNode("gpu-1", {{kRemoval, RemovalMark(false)}});
  const auto refused = Refuse(api_, "PATCH", "/nodes/gpu-1", kube::HttpStatus(409), 2);
  EXPECT_EQ(CleanUpAll().size(), 1U);
  EXPECT_EQ(*refused, 2);
  EXPECT_TRUE(status_.ok()) << status_.message();
}

TEST_F(CleanUpTest, GoesOnAfterErrorAndReportsIt) {
  PutPod("nos", "place-r-1-0", kPlaceholder);
  PutNode("gpu-1", {{kRemoval, RemovalMark(false)}});
  Refuse(api_, "DELETE", "/pods/place-r-1-0", kube::HttpStatus(403, "forbidden"));
  EXPECT_THAT(CleanUpAll(), ElementsAre("removed marks and cordon of Node gpu-1"));
  EXPECT_EQ(status_.code(), Code::kPermission);
}

}  // namespace
}  // namespace nos::controllers
