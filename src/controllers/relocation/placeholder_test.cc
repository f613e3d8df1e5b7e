#include "controllers/relocation/placeholder.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

using cluster::ResourceList;

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";
constexpr const char* kShare = "nvidia.com/gpu-10gb";

PlaceFor What() {
  PlaceFor what;
  what.id = "r-7k2";
  what.of = 3;
  what.pod = "ml/train-0";
  what.uid = "u-1";
  what.owner = "set-1";
  what.from = "gpu-1";
  what.to = "gpu-2";
  what.since = ParseTime("2026-01-01T00:00:00Z").value();
  return what;
}

cluster::Container ContainerOf(const ResourceList& requests) {
  cluster::Container container;
  container.name = "c";
  container.requests = container.limits = requests;
  return container;
}

class PlaceholderTest : public ::testing::Test {
 protected:
  PlaceholderTest() {
    config_.image = "pause:1";
    config_.pull_secrets = {"mirror"};
    pod_.meta.ns = "ml";
    pod_.meta.name = "train-0";
    pod_.scheduler_name = "nos-scheduler";
    pod_.containers = {
        ContainerOf({{"cpu", Quantity::FromMilli(1500)}, {kSlice, Quantity::FromValue(1)}})};
  }
  Json MakeJson() const { return MakePlaceholder(config_, What(), 0, pod_).value(); }
  cluster::Pod Make() const { return cluster::DecodePod(MakeJson()).value(); }

  RelocationConfig config_;
  cluster::Pod pod_;
};

TEST_F(PlaceholderTest, ImageIsPulledWithSecrets) {
  EXPECT_EQ(WriteJson(MakeJson().at("spec").at("imagePullSecrets")), R"([{"name":"mirror"}])");
  config_.pull_secrets.clear();
  EXPECT_EQ(Find(MakeJson(), "spec", "imagePullSecrets"), nullptr);
}

TEST_F(PlaceholderTest, HasSameRequestsAsPod) {
  pod_.overhead = {{"memory", Quantity::FromValue(1 << 20)}};
  const cluster::Pod place = Make();
  ASSERT_EQ(place.containers.size(), 1U);
  EXPECT_EQ(cluster::PodRequests(place), cluster::PodRequests(pod_));
  EXPECT_EQ(place.containers[0].limits, (ResourceList{{kSlice, Quantity::FromValue(1)}}))
      << "of cpu and memory it may have more, as the pod may";
  EXPECT_TRUE(AsksForAsMuch(place, pod_));
  pod_.containers[0].requests["cpu"] = Quantity::FromValue(2);
  EXPECT_FALSE(AsksForAsMuch(place, pod_));
}

TEST_F(PlaceholderTest, KeepsSharesInSeparateContainers) {
  pod_.containers = {
      ContainerOf({{"cpu", Quantity::FromValue(1)}, {kShare, Quantity::FromValue(1)}}),
      ContainerOf({{"cpu", Quantity::FromValue(2)}}),
      ContainerOf({{kShare, Quantity::FromValue(1)}})};
  const cluster::Pod place = Make();
  ASSERT_EQ(place.containers.size(), 2U);
  for (const cluster::Container& container : place.containers) {
    EXPECT_EQ(container.limits.at(kShare), Quantity::FromValue(1));
  }
  EXPECT_EQ(cluster::PodRequests(place), cluster::PodRequests(pod_));
}

TEST_F(PlaceholderTest, CoversRequestsOfInitContainers) {
  pod_.init_containers = {
      ContainerOf({{"cpu", Quantity::FromValue(8)}, {kSlice, Quantity::FromValue(2)}})};
  const cluster::Pod place = Make();
  EXPECT_EQ(cluster::PodRequests(place), cluster::PodRequests(pod_));
  EXPECT_EQ(cluster::PodRequests(place).at(kSlice), Quantity::FromValue(2));
}

TEST_F(PlaceholderTest, SupportsPodWithoutRequests) {
  pod_.containers = {cluster::Container{}};
  const cluster::Pod place = Make();
  ASSERT_EQ(place.containers.size(), 1U);
  EXPECT_TRUE(cluster::PodRequests(place).empty());
}

TEST_F(PlaceholderTest, SelectsOnlyTargetNodeWithPodsTolerations) {
  pod_.tolerations = {{"gpu", "Exists", "", "NoSchedule"}, {"", "Exists", "", ""}};
  pod_.priority_class = "batch";
  pod_.pod_anti_affinity.required.push_back({{}, {}, {}, "kubernetes.io/hostname"});
  const cluster::Pod place = Make();
  const auto terms = place.node_affinity.value_or(cluster::NodeAffinity{})
                         .required.value_or(std::vector<cluster::NodeSelectorTerm>{});
  ASSERT_EQ(terms.size(), 1U);
  const cluster::SelectorRequirement only{"metadata.name", "In", {"gpu-2"}};
  EXPECT_EQ(terms[0].match_fields, std::vector{only});
  ASSERT_EQ(place.tolerations.size(), 2U);
  EXPECT_EQ(place.tolerations[0].key, "gpu");
  EXPECT_EQ(place.tolerations[0].op, "Exists");
  EXPECT_EQ(place.tolerations[0].effect, "NoSchedule");
  EXPECT_EQ(place.priority_class, "batch");
  EXPECT_EQ(place.scheduler_name, "nos-scheduler");
  EXPECT_TRUE(place.preemption_policy.empty()) << "the API server would refuse another's";
  EXPECT_TRUE(place.pod_anti_affinity.empty());
}

TEST_F(PlaceholderTest, OwnPriorityClassNeverPreempts) {
  config_.priority_class = "nos-places";
  for (const char* priority_class : {"", "batch"}) {
    pod_.priority_class = priority_class;
    const cluster::Pod place = Make();
    EXPECT_EQ(place.priority_class, "nos-places");
    EXPECT_EQ(place.preemption_policy, "Never");
  }
}

TEST_F(PlaceholderTest, RequestsSameHostPorts) {
  cluster::HostPort port;
  port.port = 8080;
  port.ip = "10.0.0.1";
  port.protocol = "UDP";
  pod_.containers[0].host_ports = {port};
  const cluster::Pod place = Make();
  EXPECT_EQ(place.containers[0].host_ports, std::vector{port});
}

TEST_F(PlaceholderTest, UsesPodsUserButNeitherRootNorHostIpc) {
  pod_.containers = {ContainerOf({{kShare, Quantity::FromValue(1)}})};
  EXPECT_EQ(Make().user, -1);
  pod_.host_ipc = true;
  pod_.user = 1000;
  EXPECT_FALSE(Make().host_ipc);
  EXPECT_EQ(Make().user, 1000);
  pod_.containers[0].user = 0;
  EXPECT_EQ(Make().user, -1);
  EXPECT_EQ(*Find(MakeJson(), "spec", "securityContext", "runAsNonRoot"), Json(true));
}

TEST_F(PlaceholderTest, IsLabeledImmovableAndUnprivileged) {
  const cluster::Pod place = Make();
  EXPECT_EQ(place.Key(), "nos/place-r-7k2-0");
  EXPECT_TRUE(IsPlaceholder(place));
  EXPECT_EQ(ReadPlaceFor(place.meta.annotations.at(std::string(kPlaceFor)))->pod, "ml/train-0");
  EXPECT_EQ(planning::MobilityOf(place, {}).kind, planning::Mobility::kStays);
  const Json json = MakeJson();
  EXPECT_EQ(*Find(json, "spec", "automountServiceAccountToken"), Json(false));
  EXPECT_EQ(*Find(json, "spec", "securityContext", "runAsNonRoot"), Json(true));
  const Json& container = Find(json, "spec", "containers")->get_array().at(0);
  EXPECT_EQ(FindString(container, "image"), "pause:1");
  EXPECT_EQ(Find(container, "command"), nullptr);
  EXPECT_EQ(*Find(container, "securityContext", "capabilities", "drop"), Json(JsonArray{"ALL"}));
}

TEST_F(PlaceholderTest, RejectsPodWithResourceClaims) {
  pod_.claims = {{"gpu", "gpu-claim", "", false}};
  EXPECT_EQ(MakePlaceholder(config_, What(), 0, pod_).status().code(), Code::kInvalid);
}

TEST(PlaceForTest, IsReadAsItWasWritten) {
  PlaceFor what = What();
  what.for_pod = "ml/big";
  what.held = what.since + std::chrono::seconds(7);
  what.ended = {"u-2"};
  what.counted = {"u-3", "u-4"};
  const auto read = ReadPlaceFor(WritePlaceFor(what));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(WritePlaceFor(*read), WritePlaceFor(what));
  EXPECT_EQ(read->counted, what.counted);
  EXPECT_EQ(read->held, what.held);
}

TEST(PlaceForTest, RejectsInvalidMembers) {
  const Json good = ParseJson(WritePlaceFor(What())).value();
  const auto with = [&](std::string_view key, Json value) {
    Json bad = good;
    bad.get_object()[key] = std::move(value);
    return ReadPlaceFor(WriteJson(bad)).status().code();
  };
  EXPECT_EQ(with("of", 3), Code::kOk);
  EXPECT_EQ(with("unknown", 3), Code::kOk);
  EXPECT_EQ(with("of", 0), Code::kInvalid);
  EXPECT_EQ(with("of", 1'000'000), Code::kInvalid);
  EXPECT_EQ(with("id", "../x"), Code::kInvalid);
  EXPECT_EQ(with("uid", ""), Code::kInvalid);
  EXPECT_EQ(with("uid", nullptr), Code::kInvalid);
  EXPECT_EQ(with("pod", "train-0"), Code::kInvalid);
  EXPECT_EQ(with("pod", "a/b/c"), Code::kInvalid);
  EXPECT_EQ(with("for", "big"), Code::kInvalid);
  EXPECT_EQ(with("since", "soon"), Code::kInvalid);
  EXPECT_EQ(with("held", 7), Code::kInvalid);
  EXPECT_EQ(with("ended", "u-2"), Code::kInvalid);
  EXPECT_EQ(with("counted", JsonArray{1}), Code::kInvalid);
  EXPECT_EQ(with("to", Json(std::string(10'000, 'x'))), Code::kInvalid);
  EXPECT_EQ(ReadPlaceFor("").status().code(), Code::kInvalid);
  EXPECT_EQ(ReadPlaceFor("[]").status().code(), Code::kInvalid);
  EXPECT_EQ(ReadPlaceFor(std::string(1 << 20, ' ')).status().code(), Code::kInvalid);
}

TEST(RemovalTest, IsReadAsItWasWritten) {
  Removal removal;
  removal.pool = "a100";
  removal.id = "r-7k2";
  removal.since = ParseTime("2026-01-01T00:00:00Z").value();
  EXPECT_EQ(WriteRemoval(removal),
            R"({"pool":"a100","id":"r-7k2","since":"2026-01-01T00:00:00Z","state":"Emptying"})");
  removal.state = Removal::State::kAsked;
  removal.wanted = 0;
  removal.was_cordoned = true;
  const auto read = ReadRemoval(WriteRemoval(removal));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(WriteRemoval(*read), WriteRemoval(removal));
  EXPECT_EQ(read->wanted, 0);
  EXPECT_TRUE(read->was_cordoned);
}

TEST(MovedTest, IsReadAsItWasWrittenForAnHour) {
  const Time at = ParseTime("2026-01-01T00:00:00Z").value();
  cluster::Node node;
  EXPECT_TRUE(MovedFrom(node, at).empty());
  node.meta.annotations[std::string(kMovedFrom)] =
      WriteMoved({{"r-1", {at, {{"ml", 2}, {"web", 1}}}}, {"r-2", {at + kMovedCounts / 2, {}}}});
  EXPECT_EQ(MovedFrom(node, at).size(), 1U) << "what lies in the future may lie there for ever";
  const MovedById both = MovedFrom(node, at + kMovedCounts / 2);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both.at("r-1").at, at);
  EXPECT_EQ(both.at("r-1").pods, (std::map<std::string, int>{{"ml", 2}, {"web", 1}}));
  EXPECT_EQ(MovedFrom(node, at + kMovedCounts).size(), 1U);
  for (const char* bad : {"", "[]", R"({"R 1":{"at":"2026-01-01T00:00:00Z","pods":{}}})",
                          R"({"r-1":{"at":"2026","pods":{}}})", R"({"r-1":7})",
                          R"({"r-1":{"at":"2026-01-01T00:00:00Z"}})",
                          R"({"r-1":{"at":"2026-01-01T00:00:00Z","pods":{"ml":-1}}})",
                          R"({"r-1":{"at":"2026-01-01T00:00:00Z","pods":{"ml":1000000}}})"}) {
    node.meta.annotations[std::string(kMovedFrom)] = bad;
    EXPECT_TRUE(MovedFrom(node, at).empty()) << bad;
  }
}

TEST(RemovalTest, IgnoresUnreadableMark) {
  cluster::Node node;
  EXPECT_FALSE(RemovalOf(node));
  for (const char* bad : {
           "",
           "{}",
           "null",
           R"({"pool":"","id":"r-1","since":"2026-01-01T00:00:00Z","state":"Emptying"})",
           R"({"pool":"p","id":"R 1","since":"2026-01-01T00:00:00Z","state":"Emptying"})",
           R"({"pool":"p","id":"r-1","since":"2026","state":"Emptying"})",
           R"({"pool":"p","id":"r-1","since":"2026-01-01T00:00:00Z","state":"Gone"})",
           R"({"pool":"p","id":"r-1","since":"2026-01-01T00:00:00Z","state":"Asked","wanted":-1})",
           R"({"pool":"p","id":"r-1","since":"2026-01-01T00:00:00Z","state":"Asked","cordoned":1})",
       }) {
    node.meta.annotations[std::string(kRemoval)] = bad;
    EXPECT_FALSE(RemovalOf(node)) << bad;
    EXPECT_FALSE(ReadRemoval(bad).status().message().empty()) << bad;
  }
}

}  // namespace
}  // namespace nos::controllers
