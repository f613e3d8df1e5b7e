// Failures during relocations: crashes, stale caches, and changes by other clients.
#include <functional>

#include "controllers/relocation/fixture_test.h"

namespace nos::controllers {
namespace {

using Kind = RelocationNote::Kind;
using std::chrono::minutes;
using std::chrono::seconds;

class RelocationFaultsTest : public ::testing::Test {
 public:
  RelocationFaultsTest() {
    w.PutPod("a", "gpu-1");
    w.PutPod("b", "gpu-1");
    w.clock.Advance(seconds(10));
  }

  void ChangeNode(const std::function<void(Json&)>& change, const std::string& name = "gpu-1") {
    Json node = *w.api.Find("nodes", name);
    change(node);
    w.api.Put(std::move(node));
  }
  void ChangePod(const std::function<void(Json&)>& change) {
    Json pod = *w.api.Find("pods", "ml/b");
    change(pod);
    w.api.Put(std::move(pod));
  }
  void ExpectCalledOff(const std::string& why) {
    EXPECT_EQ(w.CountNotes(Kind::kCalledOff, why), 1);
    EXPECT_EQ(w.CountNotes(Kind::kCalledOff), 1);
    EXPECT_EQ(w.Places(), "");
    EXPECT_EQ(w.Evictions(), 0);
    EXPECT_TRUE(w.Has("a") && w.Has("b"));
  }
  RelocationWorld w;
};

// A fault while placeholders hold the places, or before (`held` is false). The message of the
// outcome contains `why`.
struct Trouble {
  const char* name;
  std::function<void(RelocationFaultsTest&)> happens;
  const char* why;
  bool held = true;
  bool node_is_free = true;  // afterwards
};

class RelocationTroubleTest : public RelocationFaultsTest,
                              public ::testing::WithParamInterface<Trouble> {};

TEST_P(RelocationTroubleTest, CallsRelocationOff) {
  const Trouble& trouble = GetParam();
  if (trouble.held) {
    w.StartAndHold({"a", "b"});
  } else {
    ASSERT_TRUE(w.Start({"a", "b"}).ok());
    w.Step();
  }
  trouble.happens(*this);
  w.Step();
  ExpectCalledOff(trouble.why);
  if (trouble.node_is_free) {
    EXPECT_TRUE(w.IsFree());
  }
}

void Set(Json& object, const char* part, const char* field, Json value) {
  MakeObject(object, part)[field] = std::move(value);
}

const Trouble kTroubles[] = {
    {"UncordonedNode",
     [](auto& t) { t.ChangeNode([](Json& n) { Set(n, "spec", "unschedulable", false); }); },
     "uncordoned"},
    {"LostMark",
     [](auto& t) {
       t.ChangeNode([](Json& n) { Set(n, "metadata", "annotations", JsonObject()); });
     },
     "has no annotation", true, false},
    {"DeletedNode", [](auto& t) { t.w.api.Remove("nodes", "gpu-1"); }, "node gpu-1 is gone", false,
     false},
    {"RejectedPlaceholder", [](auto& t) { t.w.SetPlace(0, "Failed"); }, "UnexpectedAdmissionError",
     false},
    {"LostPlaceholder", [](auto& t) { t.w.SetPlace(1, "Failed"); }, "placeholder of pod ml/b"},
    {"DeletedPlaceholder", [](auto& t) { t.w.api.Remove("pods", "nos/place-r-1-0"); },
     "a placeholder is gone"},
    {"CordonedTarget",
     [](auto& t) { t.ChangeNode([](Json& n) { Set(n, "spec", "unschedulable", true); }, "gpu-2"); },
     "accepts no pods"},
    {"TaintedTarget",
     [](auto& t) {
       const JsonObject taint{{"key", "node.kubernetes.io/disk-pressure"},
                              {"effect", "NoSchedule"}};
       t.ChangeNode([&](Json& n) { Set(n, "spec", "taints", JsonArray{taint}); }, "gpu-2");
     },
     "accepts no pods"},
    {"UnreachableTarget",
     [](auto& t) {
       const JsonObject ready{{"type", "Ready"}, {"status", "Unknown"}};
       t.ChangeNode([&](Json& n) { Set(n, "status", "conditions", JsonArray{ready}); }, "gpu-2");
     },
     "accepts no pods"},
    {"NewPodOnNode", [](auto& t) { t.w.PutPod("late", "gpu-1"); }, "ml/late"},
    {"ImmovablePod",
     [](auto& t) {
       t.ChangePod([](Json& pod) {
         MakeObject(pod, "metadata", "annotations")[planning::kMovable] = "false";
       });
     },
     "pod ml/b"},
    {"ResizedPod",
     [](auto& t) {
       t.ChangePod([](Json& pod) {
         pod.at("spec").at("containers").at(0) =
             JsonObject{{"name", "main"}, {"resources", {{"requests", {{"cpu", "2"}}}}}};
       });
     },
     "requests more"}};

INSTANTIATE_TEST_SUITE_P(All, RelocationTroubleTest, ::testing::ValuesIn(kTroubles),
                         [](const auto& test) { return test.param.name; });

TEST_F(RelocationFaultsTest, TerminatingPlaceholderCallsRelocationOff) {
  w.StartAndHold({"a", "b"});
  Json place = *w.api.Find("pods", "nos/place-r-1-0");
  MakeObject(place, "metadata")["deletionTimestamp"] = FormatTime(w.clock.Now());
  w.api.Put(std::move(place));
  w.Step();
  EXPECT_EQ(w.Evictions(), 0);
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "a placeholder is gone"), 1);
  EXPECT_TRUE(w.IsFree());
}

TEST_F(RelocationFaultsTest, NewPodOnEmptiedNodeKeepsNode) {
  w.StartAndHold({"a", "b"});
  w.Step();
  w.Step();
  w.StepAfter(seconds(30));
  ASSERT_TRUE(w.IsEmptied());
  w.PutPod("late", "gpu-1");
  w.Step();
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "ml/late"), 1);
}

TEST_F(RelocationFaultsTest, RemovedTargetCallsRelocationOff) {
  w.StartAndHold({"a", "b"});
  Json node = *w.api.Find("nodes", "gpu-2");
  MakeObject(node, "metadata", "annotations")[kRemoval] =
      WriteRemoval({Removal::State::kAsked, "a100", "r-9", w.clock.Now(), 1});
  w.api.Put(std::move(node));
  w.Step();
  EXPECT_EQ(w.Evictions(), 0);
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "is being removed"), 1);
  EXPECT_EQ(w.Places(), "");
}

TEST_F(RelocationFaultsTest, StaleCachesDoNotEvictTwice) {
  w.StartAndHold({"a", "b"});
  w.Step();
  w.StepStale();
  w.StepStale();
  EXPECT_EQ(w.Evictions(), 2);
  EXPECT_EQ(w.CountNotes(Kind::kEvicted), 2);
}

TEST_F(RelocationFaultsTest, WaitsForCachesToShowRelocation) {
  kube::Cache<cluster::Pod> late_pods(kube::kPods, cluster::ReadPod);
  kube::Cache<cluster::Node> late_nodes(kube::kNodes, cluster::ReadNode);
  late_pods.Pump(w.client, w.clock.Now());
  late_nodes.Pump(w.client, w.clock.Now());
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.RunPlaces(2);
  w.Pump();
  const size_t written = w.api.writes.size();
  const reconcile::Listers mark_only{late_pods, w.nodes}, places_only{w.pods, late_nodes};
  EXPECT_EQ(w.relocations->Step(mark_only, w.client, w.clock).again, seconds(10));
  EXPECT_EQ(w.relocations->Step(places_only, w.client, w.clock).again, seconds(10));
  EXPECT_EQ(w.api.writes.size(), written);
  w.Step();
  EXPECT_EQ(w.CountNotes(Kind::kHeld), 1);
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff), 0);
}

TEST_F(RelocationFaultsTest, RemovesMarkWithoutPlaceholders) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.api.Remove("pods", "nos/place-r-1-0");
  w.api.Remove("pods", "nos/place-r-1-1");
  w.Restart();
  w.Step();
  EXPECT_FALSE(w.IsFree());
  EXPECT_EQ(w.last.again, seconds(10));
  w.StepAfter(seconds(10));
  ExpectCalledOff("has no placeholder");
  EXPECT_TRUE(w.IsFree());
}

TEST_F(RelocationFaultsTest, RefusedPlaceholderCallsRelocationOffAtOnce) {
  w.api.intercept = [](const kube::ApiRequest& r) -> std::optional<Result<kube::ApiResponse>> {
    const bool second = r.method == "POST" && FindString(r.body, "metadata", "name").ends_with("1");
    if (!second) return std::nullopt;
    return kube::ApiResponse{
        403, {{"kind", "Status"}, {"message", "no PriorityClass with name x was found"}}};
  };
  const Status started = w.Start({"a", "b"});
  EXPECT_EQ(started.code(), Code::kPermission);
  EXPECT_EQ(w.CountNotes(Kind::kStarted), 1);
  ExpectCalledOff("no PriorityClass with name x was found");
  EXPECT_TRUE(w.IsFree());
}

TEST_F(RelocationFaultsTest, StartWritesNothingIfPlaceCannotBeHeld) {
  Json pod = *w.api.Find("pods", "ml/b");
  MakeObject(pod, "spec")["resourceClaims"] = JsonArray{JsonObject{{"name", "gpu"}}};
  w.api.Put(std::move(pod));
  EXPECT_EQ(w.Start({"a", "b"}).code(), Code::kInvalid);
  EXPECT_TRUE(w.api.writes.empty());
}

TEST_F(RelocationFaultsTest, CallsOffLaterOfTwoRelocationsOfOnePod) {
  w.PutPod("big", "", {"Job", "job-1"});
  ASSERT_TRUE(w.Start({"a", "b"}, "r-2").ok());
  w.clock.Advance(seconds(1));
  PlaceFor what;
  what.id = "r-1";
  what.of = 1;
  what.pod = "ml/a";
  what.uid = "u-a";
  what.from = "gpu-1";
  what.to = "gpu-3";
  what.for_pod = "ml/big";
  what.since = w.clock.Now();
  w.Pump();
  w.api.Put(MakePlaceholder(w.config, what, 0, *w.pods.Get("ml/a")).value());
  w.Step();
  EXPECT_EQ(w.Places(), "0 1");
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "is in relocation r-2 already"), 1);
  EXPECT_EQ(w.notes.back().id, "r-1");
}

TEST_F(RelocationFaultsTest, RemovesUnreadableAnnotations) {
  const auto put = [&](const std::string& ns, const std::string& text) {
    JsonObject annotations, labels;
    annotations[kPlaceFor] = text;
    labels[kPlaceholder] = "r-1";
    w.api.Put({{"kind", "Pod"},
               {"metadata",
                {{"namespace", ns},
                 {"name", "x-0"},
                 {"labels", std::move(labels)},
                 {"annotations", std::move(annotations)}}},
               {"spec", {{"containers", JsonArray{JsonObject{{"name", "c"}}}}}}});
  };
  put("nos", "{");
  put("ml", "{");
  ChangeNode([](Json& node) {
    MakeObject(node, "metadata", "annotations")[kRemoval] = "[]";
    MakeObject(node, "spec")["unschedulable"] = true;
  });
  w.Step();
  EXPECT_EQ(w.Places(), "");
  EXPECT_NE(w.api.Find("pods", "ml/x-0"), nullptr) << "users' pods are not ours";
  EXPECT_FALSE(w.Node().meta.annotations.contains(kRemoval));
  EXPECT_TRUE(w.Node().unschedulable) << "nobody knows who did that";
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff), 1);
  EXPECT_EQ(w.CountNotes(Kind::kBadMark), 1);
  EXPECT_TRUE(w.notes.back().cordoned);
}

TEST_F(RelocationFaultsTest, RemovesCopiedMarkWithoutUncordoning) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  Json node = *w.api.Find("nodes", "gpu-3");
  MakeObject(node, "metadata", "annotations")[kRemoval] = WriteRemoval(w.Mark());
  MakeObject(node, "spec")["unschedulable"] = true;
  w.api.Put(std::move(node));
  w.Step();
  EXPECT_FALSE(w.Node("gpu-3").meta.annotations.contains(kRemoval));
  EXPECT_TRUE(w.Node("gpu-3").unschedulable);
  EXPECT_EQ(w.CountNotes(Kind::kBadMark, "gpu-1 has the same id"), 1);
  EXPECT_EQ(w.Places(), "0 1") << "the other one goes on";
}

// The copy is on a node whose name comes first.
TEST_F(RelocationFaultsTest, BelievesMarkOfNodeThatPlaceholdersName) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  Json node = *w.api.Find("nodes", "gpu-3");
  MakeObject(node, "metadata")["name"] = "a-gpu";
  MakeObject(node, "metadata", "annotations")[kRemoval] = WriteRemoval(w.Mark());
  w.api.Put(std::move(node));
  w.Step();
  EXPECT_FALSE(w.Node("a-gpu").meta.annotations.contains(kRemoval));
  EXPECT_TRUE(w.Node().meta.annotations.contains(kRemoval));
  EXPECT_EQ(w.CountNotes(Kind::kBadMark, "gpu-1 has the same id"), 1);
  EXPECT_EQ(w.Places(), "0 1");
}

// The node of the relocation has lost its mark, and another one has it.
TEST_F(RelocationFaultsTest, RemovesMarkThatMovedToAnotherNode) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  const std::string mark = WriteRemoval(w.Mark());
  ChangeNode([](Json& node) { MakeObject(node, "metadata", "annotations").erase(kRemoval); });
  Json node = *w.api.Find("nodes", "gpu-3");
  MakeObject(node, "metadata", "annotations")[kRemoval] = mark;
  w.api.Put(std::move(node));
  w.Step();
  EXPECT_FALSE(w.Node("gpu-3").meta.annotations.contains(kRemoval));
  EXPECT_EQ(w.CountNotes(Kind::kBadMark, "gpu-1 has the same id"), 1);
}

TEST_F(RelocationFaultsTest, RemovesUnreadableMarkOfUncordonedNode) {
  ChangeNode([](Json& node) { MakeObject(node, "metadata", "annotations")[kRemoval] = "{}"; });
  w.Step();
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.CountNotes(Kind::kBadMark), 1);
  EXPECT_FALSE(w.notes.back().cordoned);
}

TEST_F(RelocationFaultsTest, DeletesPlaceholdersInFormerNamespace) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  w.Step();
  w.config.ns = "nos-placeholders";
  w.config.former_ns = "nos";
  w.Restart();
  w.Step();
  EXPECT_EQ(w.Places(), "");
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "are in namespace nos-placeholders now"), 2);
  w.StepAfter(minutes(1));
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.Evictions(), 0);
}

TEST_F(RelocationFaultsTest, KeepsPlaceholderLabelsOfUsers) {
  Json pod = *w.api.Find("pods", "ml/a");
  MakeObject(pod, "metadata", "labels")[kPlaceholder] = "r-1";
  w.api.Put(std::move(pod));
  w.config.former_ns = "former";
  w.Restart();
  w.Step();
  EXPECT_TRUE(w.Has("a"));
}

TEST_F(RelocationFaultsTest, FutureTimeCallsRelocationOff) {
  ASSERT_TRUE(w.Start({"a", "b"}).ok());
  Json place = *w.api.Find("pods", "nos/place-r-1-0");
  JsonObject& annotations = MakeObject(place, "metadata", "annotations");
  PlaceFor what = ReadPlaceFor(FindString(place, "metadata", "annotations", kPlaceFor)).value();
  what.since = w.clock.Now() + std::chrono::hours(24 * 365);
  annotations[kPlaceFor] = WritePlaceFor(what);
  w.api.Put(std::move(place));
  w.Step();
  ExpectCalledOff("in the future");
  EXPECT_TRUE(w.IsFree());
}

TEST_F(RelocationFaultsTest, StuckPodCallsRelocationOffAfterDeadline) {
  w.api.evicted_end_at = FormatTime(w.clock.Now());
  w.StartAndHold({"a", "b"});
  w.Step();
  w.Step();
  EXPECT_EQ(w.Places(), "0 1");
  w.StepAfter(minutes(15));
  EXPECT_EQ(w.Places(), "");
  EXPECT_TRUE(w.IsFree());
  EXPECT_EQ(w.CountNotes(Kind::kCalledOff, "does not terminate"), 1);
}

// A relocation whose process crashes at its n-th write. `seen`: the write reached the API server.
struct Crash {
  int at = 0;
  bool seen = false, places_run = true;
};

class CrashedRelocation {
 public:
  explicit CrashedRelocation(const Crash& crash) : crash_(crash) {
    w_.PutPod("a", "gpu-1");
    w_.PutPod("b", "gpu-1");
    w_.clock.Advance(seconds(10));
    w_.api.intercept = [&](const kube::ApiRequest& request) { return Intercept(request); };
  }

  // Returns whether that write was reached.
  bool Run() {
    (void)w_.Start({"a", "b"});
    for (int round = 0; round < 100; ++round) {
      if (std::exchange(dead_, false)) w_.Restart();
      OthersAct();
      w_.StepAfter(seconds(5));
    }
    return writes_ > crash_.at;
  }

  void ExpectConverged() const {
    EXPECT_EQ(w_.Places(), "");
    EXPECT_FALSE(unheld_) << "a pod was evicted whose place was not held";
    const bool pods_there = w_.Has("a") || w_.Has("b");
    EXPECT_TRUE(pods_there ? w_.IsFree() : w_.IsFree() || w_.IsEmptied());
    EXPECT_TRUE(w_.last.error.ok()) << w_.last.error.ToString();
    EXPECT_TRUE(crash_.places_run || (w_.Has("a") && w_.Has("b")));
  }
  const RelocationWorld& world() const { return w_; }

 private:
  std::optional<Result<kube::ApiResponse>> Intercept(const kube::ApiRequest& request) {
    if (request.method == "GET" || passing_) return std::nullopt;
    if (dead_) return Status(Code::kUnavailable, "no longer there");
    if (request.path.ends_with("/eviction")) unheld_ |= !HasPlace(request);
    if (writes_++ != crash_.at) return std::nullopt;
    dead_ = true;
    if (crash_.seen) {
      passing_ = true;
      (void)w_.api.Do(request);
      passing_ = false;
    }
    return Status(Code::kDeadline, "cut off");
  }

  bool HasPlace(const kube::ApiRequest& eviction) const {
    const std::string_view uid = FindString(eviction.body, "deleteOptions", "preconditions", "uid");
    const std::vector<Json> pods = w_.api.All("pods");
    return std::ranges::any_of(pods, [&](const Json& pod) {
      const auto what = ReadPlaceFor(FindString(pod, "metadata", "annotations", kPlaceFor));
      return what.ok() && what->uid == uid && FindString(pod, "spec", "nodeName") == what->to &&
             FindString(pod, "status", "phase") == "Running";
    });
  }

  void OthersAct() {
    for (int i = 0; i < 2 && crash_.places_run; ++i) {
      if (w_.api.Find("pods", "nos/" + NameOfPlaceholder("r-1", i)) != nullptr) {
        w_.SetPlace(i, "Running");
      }
    }
    for (const std::string name : {"a", "b"}) {
      if (!w_.Has(name) && !w_.Has(name + "2")) w_.PutPod(name + "2", "gpu-3");
    }
  }

  Crash crash_;
  RelocationWorld w_;
  int writes_ = 0;
  bool dead_ = false, passing_ = false, unheld_ = false;
};

TEST(RelocationCrashTest, ConvergesAfterCrashAtAnyWrite) {
  for (const bool places_run : {true, false}) {
    for (const bool seen : {true, false}) {
      int at = 0;
      for (bool more = true; more && at < 100; ++at) {
        SCOPED_TRACE(::testing::Message() << "write " << at << (seen ? " seen" : "")
                                          << (places_run ? "" : " no places"));
        CrashedRelocation relocation({at, seen, places_run});
        more = relocation.Run();
        relocation.ExpectConverged();
        EXPECT_TRUE(more || !places_run || relocation.world().IsEmptied());
      }
      EXPECT_GT(at, 5) << "it was cut off at some writes";
      EXPECT_LT(at, 100);
    }
  }
}

}  // namespace
}  // namespace nos::controllers
