#include "scheduling/plugins/inter_pod_affinity/plugin.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "scheduling/framework.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/follow.h"
#include "scheduling/testing/hint.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::LabelSelector;
using cluster::Node;
using cluster::Pod;
using cluster::PodAffinityTerm;
using cluster::StringMap;
using testing::NodeOf;

Pod Labelled(StringMap labels, std::string node = "") {
  static int next = 0;
  Pod pod = testing::PodOf(fmt::format("p{}", next++), {}, std::move(node));
  pod.meta.labels = std::move(labels);
  return pod;
}

PodAffinityTerm Term(StringMap labels, std::string key) {
  return {LabelSelector{std::move(labels), {}}, {}, std::nullopt, std::move(key)};
}
PodAffinityTerm Where(cluster::SelectorRequirement requirement, std::string key) {
  return {LabelSelector{{}, {std::move(requirement)}}, {}, std::nullopt, std::move(key)};
}

Pod Near(Pod pod, std::vector<PodAffinityTerm> terms) {
  pod.pod_affinity.required = std::move(terms);
  return pod;
}
Pod Far(Pod pod, std::vector<PodAffinityTerm> terms) {
  pod.pod_anti_affinity.required = std::move(terms);
  return pod;
}
Pod LikesNear(Pod pod, std::vector<cluster::PreferredPodTerm> terms) {
  pod.pod_affinity.preferred = std::move(terms);
  return pod;
}
Pod LikesFar(Pod pod, std::vector<cluster::PreferredPodTerm> terms) {
  pod.pod_anti_affinity.preferred = std::move(terms);
  return pod;
}

// a and b in zone 1, c in zone 2, d in no zone.
std::vector<Node> Nodes() {
  return {NodeOf("a", {}, {{"zone", "1"}, {"host", "a"}}),
          NodeOf("b", {}, {{"zone", "1"}, {"host", "b"}}),
          NodeOf("c", {}, {{"zone", "2"}, {"host", "c"}}), NodeOf("d", {}, {{"host", "d"}})};
}

// One letter per node: "." fits, "N" affinity mismatch, "F" own anti-affinity, "R" anti-affinity of
// running pods. "skip": the filter is skipped.
std::string VerdictsIn(const ClusterSnapshot& snapshot, const Pod& pod) {
  const InterPodAffinity plugin;
  CycleState state;
  if (plugin.PreFilter(pod, snapshot, state).skip) return "skip";
  std::string letters;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const Verdict verdict = plugin.Filter(state, pod, snapshot.node(i));
    if (verdict.fits()) {
      letters += '.';
    } else if (verdict.message == "node(s) didn't match pod affinity rules") {
      EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
      letters += 'N';
    } else {
      EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
      const bool far = verdict.message == "node(s) didn't match pod anti-affinity rules";
      const bool repelled =
          verdict.message == "node(s) didn't satisfy existing pods anti-affinity rules";
      EXPECT_TRUE(far || repelled) << verdict.message;
      letters += far ? 'F' : 'R';
    }
  }
  return letters;
}
std::string Verdicts(const Pod& pod, const std::vector<Pod>& running) {
  return VerdictsIn(testing::Snap(Nodes(), running), pod);
}

const StringMap kWeb{{"app", "web"}}, kDb{{"app", "db"}};

TEST(InterPodAffinityTest, SkipsPodsWithoutTerms) {
  EXPECT_EQ(Verdicts(Labelled(kWeb), {}), "skip");
  EXPECT_EQ(Verdicts(Labelled(kWeb), {Labelled(kDb, "a")}), "skip");
  EXPECT_EQ(Verdicts(Labelled(kWeb), {Far(Labelled(kDb, "a"), {Term(kDb, "zone")})}), "skip");
  EXPECT_EQ(Verdicts(LikesNear(Labelled(kWeb), {{1, Term(kDb, "zone")}}), {}), "skip");
  // Without PreFilter the filter accepts every node.
  EXPECT_TRUE(
      InterPodAffinity()
          .Filter({}, Near(Labelled(kWeb), {Term(kDb, "zone")}), testing::Snap(Nodes()).node(0))
          .fits());
}

TEST(InterPodAffinityTest, FiltersByRequiredAffinity) {
  const std::vector<Pod> db{Labelled(kDb, "a")};
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kDb, "zone")}), db), "..NN");
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kDb, "host")}), db), ".NNN");
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kDb, "rack")}), db), "NNNN");
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kWeb, "zone")}), db), "...N");
  using Requirement = cluster::SelectorRequirement;
  const auto with = [&](Requirement r) {
    return Verdicts(Near(Labelled({}), {Where(std::move(r), "zone")}), db);
  };
  EXPECT_EQ(with({"app", "In", {"web", "db"}}), "..NN");
  EXPECT_EQ(with({"app", "NotIn", {"web"}}), "..NN");
  EXPECT_EQ(with({"app", "NotIn", {"db"}}), "...N");  // no db exists, and it matches itself
  EXPECT_EQ(with({"app", "Exists", {}}), "..NN");
  EXPECT_EQ(with({"app", "DoesNotExist", {}}), "...N");
  EXPECT_EQ(with({"app", "Near", {"db"}}), "NNNN");  // invalid operator
  // An absent selector selects no pod, an empty one selects all.
  EXPECT_EQ(Verdicts(Near(Labelled({}), {{std::nullopt, {}, std::nullopt, "zone"}}), db), "NNNN");
  EXPECT_EQ(Verdicts(Near(Labelled({}), {Term(StringMap{}, "zone")}), db), "..NN");
}

TEST(InterPodAffinityTest, AllAffinityTermsMustMatchSamePodAndDomains) {
  const StringMap both{{"app", "db"}, {"tier", "1"}};
  const Pod pod = Near(Labelled(kWeb), {Term(kDb, "zone"), Term({{"tier", "1"}}, "host")});
  EXPECT_EQ(Verdicts(pod, {Labelled(both, "a")}), ".NNN");
  EXPECT_EQ(Verdicts(pod, {Labelled(kDb, "a"), Labelled({{"tier", "1"}}, "a")}), "NNNN");
  EXPECT_EQ(Verdicts(pod, {Labelled(both, "a"), Labelled(both, "b")}), "..NN");
  // d has only the host's domain.
  EXPECT_EQ(Verdicts(pod, {Labelled(both, "d")}), "NNNN");
}

TEST(InterPodAffinityTest, FirstPodOfGroupFitsAnyDomain) {
  const Pod pod = Near(Labelled(kWeb), {Term(kWeb, "zone")});
  EXPECT_EQ(Verdicts(pod, {}), "...N");
  EXPECT_EQ(Verdicts(pod, {Labelled(kDb, "a")}), "...N");
  EXPECT_EQ(Verdicts(pod, {Labelled(kWeb, "c")}), "NN.N");
  // A pod on a node outside all domains does not count.
  EXPECT_EQ(Verdicts(pod, {Labelled(kWeb, "d")}), "...N");
  // The pod does not match all of its own terms.
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kWeb, "zone"), Term(kDb, "zone")}), {}), "NNNN");
  PodAffinityTerm elsewhere = Term(kWeb, "zone");
  elsewhere.namespaces = {"y"};
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {elsewhere}), {}), "NNNN");
}

TEST(InterPodAffinityTest, FiltersByRequiredAntiAffinity) {
  EXPECT_EQ(Verdicts(Far(Labelled(kWeb), {Term(kDb, "zone")}), {Labelled(kDb, "b")}), "FF..");
  EXPECT_EQ(Verdicts(Far(Labelled(kWeb), {Term(kDb, "rack")}), {Labelled(kDb, "b")}), "....");
  EXPECT_EQ(Verdicts(Far(Labelled(kWeb), {Term(kWeb, "zone")}), {Labelled(kDb, "b")}), "....");
  // One matching term is enough.
  const Pod pod = Far(Labelled(kWeb), {Term(kDb, "host"), Term({{"tier", "1"}}, "zone")});
  EXPECT_EQ(Verdicts(pod, {Labelled(kDb, "a"), Labelled({{"tier", "1"}}, "c")}), "F.F.");
}

TEST(InterPodAffinityTest, FiltersByAntiAffinityOfRunningPods) {
  const auto repelling = [](StringMap selector, std::string key, std::string node) {
    return Far(Labelled(kDb, std::move(node)), {Term(std::move(selector), std::move(key))});
  };
  EXPECT_EQ(Verdicts(Labelled(kWeb), {repelling(kWeb, "zone", "a")}), "RR..");
  EXPECT_EQ(Verdicts(Labelled(kWeb), {repelling(kWeb, "zone", "d")}), "skip");
  EXPECT_EQ(Verdicts(Labelled(kWeb), {repelling(kWeb, "host", "a"), repelling(kWeb, "host", "d")}),
            "R..R");
  EXPECT_EQ(Verdicts(Labelled(kDb), {repelling(kWeb, "zone", "a")}), "skip");
  // The pod's own rules are checked first: near, then far.
  const std::vector<Pod> running{repelling(kWeb, "zone", "a"), Labelled(kDb, "c")};
  EXPECT_EQ(Verdicts(Near(Labelled(kWeb), {Term(kDb, "zone")}), running), "RR.N");
  EXPECT_EQ(Verdicts(Far(Labelled(kWeb), {Term(kDb, "host")}), running), "FRF.");
}

class Namespaces : public ::testing::Test {
 protected:
  Namespaces() : snapshot_(testing::Snap(Nodes(), {InTeam("red", "a"), InTeam("blue", "c")})) {
    for (const char* name : {"red", "blue"}) {
      auto ns = std::make_shared<cluster::Namespace>();
      ns->meta.name = name;
      ns->meta.labels = {{"team", name}};
      snapshot_.ChangeContext().namespaces.Set(name, std::move(ns));
    }
  }
  static Pod InTeam(std::string ns, std::string node) {
    Pod pod = Labelled(kDb, std::move(node));
    pod.meta.ns = std::move(ns);
    return pod;
  }
  std::string WithFar(std::vector<std::string> names, std::optional<LabelSelector> selector) {
    return VerdictsIn(snapshot_, Far(Labelled({}), {{LabelSelector{kDb, {}}, std::move(names),
                                                     std::move(selector), "zone"}}));
  }
  ClusterSnapshot snapshot_;
};

TEST_F(Namespaces, ResolvesNamespacesOfPodsTerms) {
  const auto team = [](std::string op, std::string name) {
    return LabelSelector{{}, {{"team", std::move(op), {std::move(name)}}}};
  };
  EXPECT_EQ(WithFar({}, std::nullopt), "....");  // only its own namespace
  EXPECT_EQ(WithFar({"red"}, std::nullopt), "FF..");
  EXPECT_EQ(WithFar({}, team("In", "blue")), "..F.");
  EXPECT_EQ(WithFar({"red"}, team("In", "blue")), "FFF.");
  EXPECT_EQ(WithFar({}, team("In", "green")), "....");
  EXPECT_EQ(WithFar({}, LabelSelector{}), "FFF.");
  EXPECT_EQ(WithFar({}, team("NotIn", "red")), "..F.");
}

TEST_F(Namespaces, ResolvesNamespacesOfRunningPodsTerms) {
  const auto repelled = [&](Pod pod, std::vector<std::string> names,
                            std::optional<LabelSelector> selector) {
    Pod other = InTeam("red", "a");
    other.pod_anti_affinity.required = {
        {LabelSelector{kDb, {}}, std::move(names), std::move(selector), "host"}};
    ClusterSnapshot with = snapshot_;
    EXPECT_TRUE(with.Bind(std::make_shared<const Pod>(other), "a").ok());
    return VerdictsIn(with, pod);
  };
  const LabelSelector blue{{{"team", "blue"}}, {}};
  EXPECT_EQ(repelled(InTeam("red", ""), {}, std::nullopt), "R...");
  EXPECT_EQ(repelled(InTeam("blue", ""), {}, std::nullopt), "skip");
  EXPECT_EQ(repelled(InTeam("blue", ""), {"blue"}, std::nullopt), "R...");
  EXPECT_EQ(repelled(InTeam("blue", ""), {}, blue), "R...");
  EXPECT_EQ(repelled(InTeam("red", ""), {}, blue), "skip");
  EXPECT_EQ(repelled(InTeam("unknown", ""), {}, blue), "skip");
  EXPECT_EQ(repelled(InTeam("unknown", ""), {}, LabelSelector{}), "R...");
}

// Normalized scores, or "none" if the plugin does not score.
std::vector<int64_t> Scores(const Pod& pod, const std::vector<Pod>& running,
                            const InterPodAffinityOptions& options = {}) {
  std::vector<Framework::Entry> entries;
  entries.push_back({std::make_unique<InterPodAffinity>(options), 1});
  const Framework framework(std::move(entries));
  const ClusterSnapshot snapshot = testing::Snap(Nodes(), running);
  std::vector<const cluster::NodeInfo*> nodes;
  for (size_t i = 0; i < snapshot.size(); ++i) nodes.push_back(&snapshot.node(i));
  return framework.Score(framework.PreFilter(pod, snapshot), pod, snapshot, nodes);
}
using Row = std::vector<int64_t>;

TEST(InterPodAffinityTest, AddsUpPreferredTerms) {
  const std::vector<Pod> db{Labelled(kDb, "a"), Labelled(kDb, "a"), Labelled(kDb, "c")};
  EXPECT_EQ(Scores(Labelled(kWeb), db), (Row{0, 0, 0, 0}));
  EXPECT_EQ(Scores(LikesNear(Labelled(kWeb), {{8, Term(kDb, "zone")}}), db),
            (Row{100, 100, 50, 0}));
  EXPECT_EQ(Scores(LikesNear(Labelled(kWeb), {{8, Term(kDb, "zone")}, {5, Term(kDb, "host")}}), db),
            (Row{100, 61, 50, 0}));  // 26, 16, 13, 0
  EXPECT_EQ(Scores(LikesFar(Labelled(kWeb), {{8, Term(kDb, "zone")}}), db), (Row{0, 0, 50, 100}));
  EXPECT_EQ(Scores(LikesFar(LikesNear(Labelled(kWeb), {{9, Term(kDb, "zone")}}),
                            {{3, Term(kDb, "host")}}),
                   db),
            (Row{66, 100, 33, 0}));  // 12, 18, 6, 0
}

TEST(InterPodAffinityTest, ScoresPreferredTermsOfRunningPods) {
  const std::vector<Pod> running{LikesNear(Labelled(kDb, "a"), {{5, Term(kWeb, "zone")}}),
                                 LikesFar(Labelled(kDb, "c"), {{10, Term(kWeb, "host")}})};
  EXPECT_EQ(Scores(Labelled(kWeb), running), (Row{100, 100, 0, 66}));  // 5, 5, -10, 0
  EXPECT_EQ(Scores(Labelled(kDb), running), (Row{0, 0, 0, 0}));
  const InterPodAffinityOptions ignore{1, true};
  EXPECT_EQ(Scores(Labelled(kWeb), running, ignore), (Row{0, 0, 0, 0}));
  // Only for pods without preferred terms of their own.
  EXPECT_EQ(Scores(LikesNear(Labelled(kWeb), {{5, Term(kDb, "host")}}), running, ignore),
            (Row{100, 66, 0, 33}));  // 10, 5, -5, 0
}

TEST(InterPodAffinityTest, ScoresRequiredAffinityOfRunningPodsByWeight) {
  const std::vector<Pod> running{Near(Labelled(kDb, "a"), {Term(kWeb, "zone")}),
                                 LikesNear(Labelled(kDb, "c"), {{4, Term(kWeb, "host")}})};
  EXPECT_EQ(Scores(Labelled(kWeb), running), (Row{25, 25, 100, 0}));
  EXPECT_EQ(Scores(Labelled(kWeb), running, {8, false}), (Row{100, 100, 50, 0}));
  EXPECT_EQ(Scores(Labelled(kWeb), running, {0, false}), (Row{0, 0, 100, 0}));
}

PodAffinityTerm RandomTerm(Random& random) {
  PodAffinityTerm term =
      Term({{random.Below(2) == 0 ? "app" : "tier", random.Below(2) == 0 ? "1" : "2"}},
           random.Below(2) == 0 ? "zone" : "host");
  if (random.Below(6) == 0) term.namespace_selector = LabelSelector{};
  if (random.Below(6) == 0) term.namespace_selector = LabelSelector{{{"team", "red"}}, {}};
  if (random.Below(6) == 0) term.namespaces = {"y"};
  return term;
}

Pod RandomPod(Random& random) {
  Pod pod = Labelled({{"app", random.Below(2) == 0 ? "1" : "2"}});
  if (random.Below(2) == 0) pod.meta.labels["tier"] = random.Below(2) == 0 ? "1" : "2";
  if (random.Below(3) == 0) pod.meta.ns = "y";
  const auto terms = [&](std::vector<PodAffinityTerm>& to) {
    for (uint64_t n = random.Below(8); n > 5; --n) to.push_back(RandomTerm(random));
  };
  terms(pod.pod_affinity.required);
  terms(pod.pod_anti_affinity.required);
  for (auto* preferred : {&pod.pod_affinity.preferred, &pod.pod_anti_affinity.preferred}) {
    if (random.Below(3) == 0) {
      preferred->push_back({static_cast<int>(random.Below(100)) + 1, RandomTerm(random)});
    }
  }
  return pod;
}

TEST(InterPodAffinityTest, IncrementalUpdatesEqualRecomputation) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Node> nodes = Nodes();
    nodes.push_back(NodeOf("e", {}, {{"zone", "3"}, {"host", "e"}}));
    std::vector<Pod> pool;
    for (int i = 0; i < 6; ++i) pool.push_back(RandomPod(random));
    ClusterSnapshot snapshot = testing::Snap(nodes);
    auto ns = std::make_shared<cluster::Namespace>();
    ns->meta.labels = {{"team", "red"}};
    snapshot.ChangeContext().namespaces.Set(round % 2 == 0 ? "x" : "y", std::move(ns));
    const InterPodAffinity plugin({static_cast<int32_t>(random.Below(3)), random.Below(2) == 0});
    EXPECT_EQ(testing::FollowFault(plugin, RandomPod(random), snapshot, pool, 25, random), "")
        << "round " << round;
  }
}

TEST(InterPodAffinityTest, HintsMissNoHelpfulEvent) {
  Random random(2);
  std::vector<Node> nodes = Nodes();
  for (const char* name : {"a", "b", "e"}) {
    nodes.push_back(NodeOf(name, {}, {{"zone", "2"}, {"host", name}}));
    nodes.push_back(NodeOf(name, {}, {{"zone", "3"}}));
  }
  for (int round = 0; round < 300; ++round) {
    std::vector<Pod> pool;
    for (int i = 0; i < 6; ++i) pool.push_back(RandomPod(random));
    const Pod pod = RandomPod(random);
    EXPECT_EQ(testing::HintFault(InterPodAffinity(), pod, testing::Snap(Nodes()), pool, nodes, 25,
                                 random),
              "")
        << "round " << round;
  }
}

TEST(InterPodAffinityTest, HintsIgnoreIrrelevantEvents) {
  using enum ClusterEvent::Kind;
  const InterPodAffinity plugin;
  const auto shared = [](auto value) { return std::make_shared<const decltype(value)>(value); };
  const auto bound = [&](const Pod& pod, const Pod& other) {
    return plugin.MayHelp({kPodBound, nullptr, nullptr, nullptr, shared(other)}, pod);
  };
  const auto left = [&](const Pod& pod, const Pod& other) {
    return plugin.MayHelp({kPodLeft, nullptr, nullptr, shared(other), nullptr}, pod);
  };
  const Pod near = Near(Labelled(kWeb), {Term(kDb, "zone")});
  const Pod far = Far(Labelled(kWeb), {Term(kDb, "zone")});
  const Pod web = Labelled(kWeb, "a"), db = Labelled(kDb, "a");
  EXPECT_TRUE(bound(near, db));
  EXPECT_FALSE(bound(near, web));
  EXPECT_FALSE(bound(far, web));
  EXPECT_FALSE(bound(far, db));
  EXPECT_TRUE(left(far, db));
  EXPECT_FALSE(left(far, web));
  EXPECT_FALSE(left(near, db));
  EXPECT_TRUE(left(Labelled(kWeb), Far(db, {Term(kWeb, "zone")})));
  EXPECT_FALSE(left(Labelled(kWeb), Far(db, {Term(kDb, "zone")})));
  EXPECT_TRUE(left(Near(Labelled(kWeb), {Term(kWeb, "zone")}), web));  // it may be the first again
  EXPECT_TRUE(plugin.MayHelp({kPodChanged, nullptr, nullptr, shared(web), shared(db)}, near));
  EXPECT_FALSE(plugin.MayHelp({kPodChanged, nullptr, nullptr, shared(web), shared(db)}, far));
  EXPECT_TRUE(plugin.MayHelp({kPodChanged, nullptr, nullptr, shared(db), shared(web)}, far));
  EXPECT_FALSE(plugin.MayHelp({kPodChanged, nullptr, nullptr, shared(db), shared(db)}, far));
  const auto added = [&](const Pod& pod, StringMap labels) {
    const Node node = NodeOf("n", {}, std::move(labels));
    return plugin.MayHelp({kNodeAdded, nullptr, shared(node), nullptr, nullptr}, pod);
  };
  EXPECT_TRUE(added(near, {{"zone", "1"}}));
  EXPECT_FALSE(added(near, {{"host", "n"}}));
  EXPECT_TRUE(added(far, {}));
  const auto changed = [&](const Pod& pod, StringMap before, StringMap after) {
    const Node from = NodeOf("n", {}, std::move(before)), to = NodeOf("n", {}, std::move(after));
    return plugin.MayHelp({kNodeChanged, shared(from), shared(to), nullptr, nullptr}, pod);
  };
  EXPECT_FALSE(changed(near, {}, {}));
  EXPECT_TRUE(changed(near, {}, {{"zone", "1"}}));
  EXPECT_FALSE(changed(near, {}, {{"rack", "1"}}));
  EXPECT_FALSE(changed(far, {}, {{"zone", "1"}}));
  EXPECT_TRUE(changed(far, {{"zone", "1"}}, {{"zone", "2"}}));
  EXPECT_TRUE(changed(far, {{"zone", "1"}}, {}));
  EXPECT_TRUE(plugin.MayHelp({kContext, nullptr, nullptr, nullptr, nullptr, "Namespace"}, far));
  EXPECT_FALSE(plugin.MayHelp({kContext, nullptr, nullptr, nullptr, nullptr, "Service"}, far));
}

}  // namespace
}  // namespace nos::scheduling
