#include "cmd/telemetry/cluster_actions.h"

#include <gtest/gtest.h>

#include "kube/client.h"
#include "sim/world.h"

namespace nos::cmd {
namespace {

using telemetryserver::ActionCall;
using telemetryserver::Reader;

constexpr const char* kNames = R"(apiVersion: v1
kind: Pod
metadata: {name: try-1, namespace: team-a}
)";

std::string PodText(const std::string& profile, int count, const std::string& more = "") {
  return std::string(kNames) + "spec:\n  schedulerName: nos-scheduler\n" + more +
         "  containers:\n  - name: main\n    image: x\n    resources:\n      limits: "
         "{nvidia.com/mig-" +
         profile + ": " + std::to_string(count) + "}\n";
}

// A cluster of one node with one GPU; its world does not advance by itself.
class ClusterActionsTest : public ::testing::Test {
 protected:
  ClusterActionsTest() {
    EXPECT_TRUE(world_.AddNode({.name = "n1", .gpus = {{"A100-40GB"}}}).ok());
    EXPECT_TRUE(world_.Boot().ok());
    world_.StartControllers(nullptr);
    world_.RunFor(std::chrono::minutes(1));
    for (const char* ns : {"team-a", "team-b"}) {
      const Json made{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}};
      (void)client_.Create(kube::kNamespaces, "", made);
    }
    chief_.may_create = kim_.may_create = true;
    Make({.what_if = true, .submit = true});
  }
  void Make(ActionsConfig config) {
    actions_ = *ClusterActions::Make(
        std::move(config),
        {.transport = world_.api(),
         .as_reader = [this](const ActionCall&) -> Result<std::shared_ptr<kube::Transport>> {
           if (!as_reader_.ok()) return as_reader_;
           return std::shared_ptr<kube::Transport>(&world_.api(), [](kube::Transport*) {});
         },
         .may_create = [](const Reader& reader, const std::string& ns) -> Result<bool> {
           return reader.may_all || ns == "team-a";
         },
         .catalogue = gpu::Catalogue::Builtin()});
  }
  Result<std::string> Ask(const Reader& reader, const std::string& pod) {
    ActionCall call{reader, request_, "sandbox", pod, ""};
    return actions_->WhatIf(call);
  }
  Json Answer(const Reader& reader, const std::string& pod) {
    const auto text = Ask(reader, pod);
    EXPECT_TRUE(text.ok()) << text.status().ToString();
    return ParseJson(
               text.value_or(R"({"fits":null,"would_partition":[],"would_evict":[],"steps":[]})"))
        .value_or(Json());
  }
  size_t Pods() { return client_.List(kube::kPods, "team-a", {})->items.size(); }
  // Adds a running pod of team-b that takes seven slices. Watches start after it: with watches
  // already running, the new pod could become visible only after the test's request.
  void FillTheGpu() {
    sim::PodSpec pod{.ns = "team-b", .name = "secret-train", .containers = {{{"1g.5gb", 7}}}};
    world_.Submit(pod, world_.Now());
    world_.RunFor(std::chrono::minutes(3));
    const auto made = client_.Get(kube::kPods, "team-b", "secret-train");
    ASSERT_TRUE(made.ok());
    ASSERT_EQ(FindString(*made, "spec", "nodeName"), "n1");
    Make({.what_if = true, .submit = true});
  }

  sim::World world_{sim::WorldOptions(), gpu::Catalogue::Builtin()};
  kube::Client client_{world_.api()};
  Status as_reader_;
  net::HttpRequest request_;
  Reader chief_{"chief", true, {}}, kim_{"kim", false, {"team-a"}};
  std::unique_ptr<ClusterActions> actions_;
};

TEST_F(ClusterActionsTest, WhatIfShowsNodeAndNewSlices) {
  const Json answer = Answer(kim_, PodText("3g.20gb", 2));
  EXPECT_EQ(*Find(answer, "fits"), Json(true)) << WriteJson(answer);
  EXPECT_EQ(FindString(answer, "node"), "n1");
  const JsonArray& partitioned = Find(answer, "would_partition")->get_array();
  ASSERT_EQ(partitioned.size(), 1U) << WriteJson(answer);
  EXPECT_EQ(Find(partitioned[0], "make")->get_array().size(), 2U);
  EXPECT_EQ(*Find(answer, "would_cut"), *Find(answer, "would_partition")) << "the old key";
  EXPECT_TRUE(FindString(answer, "text").starts_with("team-a/try-1 fits on node n1"));
  EXPECT_EQ(Pods(), 0U) << "what-if changes nothing";
}

TEST_F(ClusterActionsTest, WhatIfShowsReasonAndRemedy) {
  const Json answer = Answer(kim_, PodText("7g.40gb", 2));
  EXPECT_EQ(*Find(answer, "fits"), Json(false));
  EXPECT_EQ(Find(answer, "node"), nullptr);
  EXPECT_FALSE(Find(answer, "steps")->get_array().empty());
  EXPECT_NE(FindString(answer, "text").find("remedy"), std::string::npos);
}

TEST_F(ClusterActionsTest, WhatIfHidesPodsOfOtherNamespaces) {
  FillTheGpu();
  const std::string pod = PodText("1g.5gb", 1, "  priority: 1000\n");
  as_reader_ = Status(Code::kUnimplemented, "not here");
  const Json all = Answer(chief_, pod);
  EXPECT_EQ(*Find(all, "fits"), Json(true)) << WriteJson(all);
  EXPECT_EQ(WriteJson(*Find(all, "would_evict")),
            R"([{"namespace":"team-b","name":"secret-train"}])");
  const auto some = Ask(kim_, pod);
  ASSERT_TRUE(some.ok()) << some.status().ToString();
  EXPECT_EQ(some->find("secret"), std::string::npos) << *some;
  EXPECT_EQ(some->find("team-b"), std::string::npos) << *some;
  EXPECT_NE(some->find(R"("would_evict":["a pod of another namespace"])"), std::string::npos);
  // Nor are they named if they only occupy the GPU.
  const auto waits = Ask(kim_, PodText("1g.5gb", 1));
  ASSERT_TRUE(waits.ok());
  EXPECT_EQ(waits->find("secret"), std::string::npos) << *waits;
  EXPECT_NE(waits->find("not here"), std::string::npos) << "the missing dry run is noted";
}

TEST_F(ClusterActionsTest, WhatIfRequiresRightToCreatePods) {
  std::string pod = PodText("1g.5gb", 1);
  pod.replace(pod.find("team-a"), 6, "team-b");
  for (const auto& status : {Ask(kim_, pod).status(), [&] {
                               ActionCall call{kim_, request_, "sandbox", pod, ""};
                               return actions_->Submit(call).status();
                             }()}) {
    EXPECT_EQ(status.code(), Code::kPermission);
    EXPECT_EQ(status.message(), "kim may not create pods in namespace team-b");
  }
  EXPECT_TRUE(Ask(chief_, pod).ok());
}

TEST_F(ClusterActionsTest, RefusesReaderWithoutRightsBeforeItReadsText) {
  kim_.may_create = false;
  for (const auto& status : {Ask(kim_, "{").status(), [&] {
                               ActionCall call{kim_, request_, "sandbox", "{", ""};
                               return actions_->Submit(call).status();
                             }()}) {
    EXPECT_EQ(status.code(), Code::kPermission);
    EXPECT_EQ(status.message(), "kim may not create pods in any namespace");
  }
}

TEST_F(ClusterActionsTest, SubmitCreatesPodOnceAndPassesOnErrors) {
  ActionCall call{kim_, request_, "sandbox", PodText("1g.5gb", 1), ""};
  const auto made = actions_->Submit(call);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(*made, R"({"namespace":"team-a","name":"try-1"})");
  EXPECT_EQ(call.subject, "team-a/try-1");
  EXPECT_EQ(Pods(), 1U);
  EXPECT_EQ(actions_->Submit(call).status().code(), Code::kAlreadyExists);
  const auto again = Ask(kim_, PodText("1g.5gb", 1));
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_NE(again->find("exists"), std::string::npos);
  call.pod = std::string(kNames) + "spec: {containers: []}";
  const Status wrong = actions_->Submit(call).status();
  EXPECT_EQ(wrong.code(), Code::kInvalid);
  EXPECT_NE(wrong.message().find("spec.containers"), std::string::npos) << wrong.message();
  EXPECT_EQ(Pods(), 1U);
}

TEST_F(ClusterActionsTest, UnconfiguredActionsAreUnimplemented) {
  Make({.submit = true, .cluster = "prod"});
  EXPECT_EQ(Ask(chief_, PodText("1g.5gb", 1)).status().code(), Code::kUnimplemented);
  ActionCall call{chief_, request_, "lab", PodText("1g.5gb", 1), ""};
  const Status elsewhere = actions_->Submit(call).status();
  EXPECT_EQ(elsewhere.message(), "this server has access to cluster prod alone, not to lab");
  EXPECT_FALSE(actions_->Of(chief_).submit) << "no transport with the reader's rights";
  Make({.submit = true});
  call.only_cluster = false;
  EXPECT_EQ(actions_->Submit(call).status().code(), Code::kUnimplemented)
      << "several clusters report";
  EXPECT_EQ(Pods(), 0U);
  chief_.has_cluster_token = true;
  EXPECT_TRUE(actions_->Of(chief_).submit);
  EXPECT_FALSE(actions_->Of(chief_).what_if);
}

TEST(WrittenPodTest, DropsFieldsSetByApiServer) {
  const auto pod = ReadWrittenPod(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"x-","uid":"1",)"
      R"("ownerReferences":[{}],"deletionTimestamp":"now"},"spec":{},"status":{"phase":"Running"}})");
  ASSERT_TRUE(pod.ok()) << pod.status().ToString();
  EXPECT_EQ(WriteJson(pod->object),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"x-",)"
            R"("namespace":"default"},"spec":{}})");
  EXPECT_EQ(pod->NameOrSo(), "x-0");
}

TEST(WrittenPodTest, RejectsHostileTexts) {
  const std::string head = "apiVersion: v1\nkind: Pod\nmetadata: ";
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("[]"), std::string("{{{"),
        head + "{name: a}\n---\n" + head + "{name: b}", std::string("apiVersion: v1\nkind: List"),
        head + "{name: a, namespace: ../../kube-system}", head + "{name: a, namespace: a/b}",
        head + "{name: \"<script>\"}", head + "{name: \"a\\r\\nX: y\"}", head + "{}", head + "[]",
        head + "{name: 7}", "a: " + std::string(1000, '['),
        std::string("a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
                    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
                    "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n"
                    "g: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]")}) {
    EXPECT_EQ(ReadWrittenPod(text).status().code(), Code::kInvalid) << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace nos::cmd
