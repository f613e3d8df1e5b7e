#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/apiserver/objects/tree.h"
#include "sim/apiserver/patching/managed_fields.h"
#include "sim/apiserver/patching/patch_json.h"
#include "sim/apiserver/patching/patch_merge.h"
#include "sim/apiserver/patching/patch_strategic.h"

namespace nos::sim {
namespace {

Json J(std::string_view text) {
  auto parsed = ParseJson(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Json();
}

TypeRef TypeOf(std::string_view group, std::string_view plural) {
  static const TypeRegistry types;
  return types.Find(group, "v1", plural);
}

TEST(MergePatchTest, MatchesExamplesOfTheRfc) {  // RFC 7396, appendix A
  const std::array<const char*, 3> cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& [target, patch, result] : cases) {
    Json value = J(target);
    MergePatch(value, J(patch));
    EXPECT_EQ(value, J(result)) << target << " " << patch;
  }
}

TEST(JsonPatchTest, AppliesEveryOperation) {
  Json value = J(R"({"a":{"b/c":[1,2,3]},"d":"x"})");
  const auto refusal = JsonPatch(value, J(R"([
      {"op":"test","path":"/a/b~1c/1","value":2},
      {"op":"add","path":"/a/b~1c/-","value":4},
      {"op":"add","path":"/a/b~1c/0","value":0},
      {"op":"remove","path":"/a/b~1c/1"},
      {"op":"replace","path":"/d","value":"y"},
      {"op":"copy","from":"/d","path":"/e"},
      {"op":"move","from":"/a/b~1c","path":"/f"}])"));
  ASSERT_FALSE(refusal.has_value()) << refusal->message;
  EXPECT_EQ(value, J(R"({"a":{},"d":"y","e":"y","f":[0,2,3,4]})"));
}

TEST(JsonPatchTest, RefusesMalformedOrInapplicablePatches) {
  const std::pair<const char*, int> cases[] = {
      {R"({})", 400},
      {R"([{"op":"add","path":"a","value":1}])", 400},
      {R"([{"op":"add","path":"/a"}])", 400},
      {R"([{"op":"fly","path":"/a"}])", 400},
      {R"([{"op":"move","path":"/a"}])", 400},
      {R"([{"op":"add","path":"/~2","value":1}])", 400},
      {R"([7])", 400},
      {R"([{"op":"test","path":"/a","value":2}])", 422},
      {R"([{"op":"remove","path":"/x"}])", 422},
      {R"([{"op":"remove","path":""}])", 422},
      {R"([{"op":"replace","path":"/x","value":1}])", 422},
      {R"([{"op":"add","path":"/l/9","value":1}])", 422},
      {R"([{"op":"add","path":"/l/01","value":1}])", 422},
      {R"([{"op":"add","path":"/a/b","value":1}])", 422},
      {R"([{"op":"move","from":"/o","path":"/o/x"}])", 422},
      {R"([{"op":"copy","from":"/x","path":"/y"}])", 422},
  };
  for (const auto& [patch, code] : cases) {
    Json value = J(R"({"a":1,"l":[1],"o":{}})");
    const auto refusal = JsonPatch(value, J(patch));
    ASSERT_TRUE(refusal.has_value()) << patch;
    EXPECT_EQ(refusal->code, code) << patch;
  }
}

TEST(JsonPatchTest, CopiesCannotGrowWithoutBound) {
  for (const char* path : {"/a/b", "/l/-"}) {
    Json value = J(R"({"a":{"x":"y"},"l":[]})");
    JsonArray patch;
    for (int i = 0; i < 200; ++i) {
      patch.push_back({{"op", "copy"}, {"from", ""}, {"path", path}});
    }
    const auto refusal = JsonPatch(value, patch);
    ASSERT_TRUE(refusal.has_value());
    EXPECT_LE(BytesOf(value), 8 * kMaxObjectBytes);
  }
}

// Patches of any shape end with an answer and without a crash.
TEST(JsonPatchTest, SurvivesRandomPatches) {
  Random random(7);
  const char* paths[] = {"", "/a", "/a/b", "/l", "/l/0", "/l/-", "/l/1/x", "/a/b/c", "/z", "/a/"};
  const char* ops[] = {"add", "remove", "replace", "move", "copy", "test"};
  for (int round = 0; round < 3000; ++round) {
    Json value = J(R"({"a":{"b":[1,{"c":2}]},"l":[1,{"x":"y"},[]]})");
    JsonArray patch;
    for (uint64_t i = 0; i < 1 + random.Below(12); ++i) {
      patch.push_back({{"op", ops[random.Below(6)]},
                       {"path", paths[random.Below(10)]},
                       {"from", paths[random.Below(10)]},
                       {"value", J(random.Chance(0.5) ? R"({"b":[1]})" : "[2]")}});
    }
    (void)JsonPatch(value, patch);
    EXPECT_LE(DepthOf(value), kMaxDepth + 1);
  }
}

class StrategicTest : public testing::Test {
 protected:
  Json Patched(std::string_view target, std::string_view patch) {
    Json value = J(target);
    const auto refusal = StrategicPatch(value, J(patch), rules_);
    EXPECT_FALSE(refusal.has_value()) << (refusal ? refusal->message : "");
    return value;
  }
  MergeRules rules_{*TypeOf("", "pods")};
};

TEST_F(StrategicTest, ListsMergeByTheirKey) {
  EXPECT_EQ(Patched(R"({"spec":{"containers":[{"name":"a","image":"1","args":["x"]},
                        {"name":"b","image":"1"}]}})",
                    R"({"spec":{"containers":[{"name":"b","image":"2"},{"name":"c"}]}})"),
            J(R"({"spec":{"containers":[{"name":"a","image":"1","args":["x"]},
                 {"name":"b","image":"2"},{"name":"c"}]}})"));
  EXPECT_EQ(Patched(R"({"spec":{"tolerations":[{"key":"a"}]}})",
                    R"({"spec":{"tolerations":[{"key":"b"}]}})"),
            J(R"({"spec":{"tolerations":[{"key":"b"}]}})"));
}

TEST_F(StrategicTest, AppliesDirectives) {
  EXPECT_EQ(Patched(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                    R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})"),
            J(R"({"spec":{"containers":[{"name":"b"}]}})"));
  EXPECT_EQ(Patched(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                    R"({"spec":{"containers":[{"name":"c"},{"$patch":"replace"}]}})"),
            J(R"({"spec":{"containers":[{"name":"c"}]}})"));
  EXPECT_EQ(Patched(R"({"metadata":{"labels":{"a":"1","b":"2"}}})",
                    R"({"metadata":{"labels":{"$patch":"replace","c":"3"}}})"),
            J(R"({"metadata":{"labels":{"c":"3"}}})"));
  EXPECT_EQ(Patched(R"({"metadata":{"finalizers":["a","b"]}})",
                    R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],
                                    "finalizers":["c"]}})"),
            J(R"({"metadata":{"finalizers":["b","c"]}})"));
  EXPECT_EQ(Patched(R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})",
                    R"({"spec":{"volumes":[{"name":"v","$retainKeys":["name","emptyDir"],
                                            "emptyDir":{}}]}})"),
            J(R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})"));
}

TEST_F(StrategicTest, SetElementOrderSortsListedElements) {
  EXPECT_EQ(Patched(R"({"spec":{"containers":[{"name":"a"},{"name":"s"},{"name":"b"}]}})",
                    R"({"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"b"},
                        {"name":"a"}],"containers":[{"name":"c"}]}})"),
            J(R"({"spec":{"containers":[{"name":"c"},{"name":"s"},{"name":"b"},{"name":"a"}]}})"));
}

TEST_F(StrategicTest, MalformedPatchesAreRefused) {
  for (const char* patch :
       {R"([1])", R"({"$patch":"maybe"})", R"({"spec":{"containers":[{"image":"x"}]}})",
        R"({"spec":{"containers":["x"]}})", R"({"metadata":{"$unknown":1}})",
        R"({"metadata":{"$setElementOrder/finalizers":7}})"}) {
    Json value = J(R"({"spec":{"containers":[]}})");
    EXPECT_TRUE(StrategicPatch(value, J(patch), rules_).has_value()) << patch;
  }
}

TEST_F(StrategicTest, PodTemplatesMergeLikePods) {
  const MergeRules deployment(*TypeOf("apps", "deployments"));
  Json value = J(R"({"spec":{"template":{"spec":{"containers":[{"name":"a","env":[
      {"name":"X","value":"1"}]}]}}}})");
  ASSERT_FALSE(StrategicPatch(value, J(R"({"spec":{"template":{"spec":{"containers":[{"name":"a",
      "env":[{"name":"Y","value":"2"}]}]}}}})"),
                              deployment));
  EXPECT_EQ(
      Find(value, "spec", "template", "spec", "containers")->at(0).at("env").get_array().size(),
      2u);
}

class ApplyTest : public testing::Test {
 protected:
  // Applies the config; returns the fields of the refusal's causes, empty on success.
  std::vector<std::string> Apply(const std::string& manager, std::string_view config,
                                 bool force = false) {
    auto result = ApplyConfig(*type_, live_, J(config), force, {manager, "", "v1", Time()}, rules_);
    std::vector<std::string> fields;
    if (result.ok()) {
      live_ = std::move(*result);
    } else {
      for (const Cause& cause : result.status().causes) fields.push_back(cause.field);
    }
    return fields;
  }
  void Update(const std::string& manager, std::string_view merge_patch) {
    Json after = live_;
    MergePatch(after, J(merge_patch));
    RecordUpdate(live_, after, {manager, "", "v1", Time()}, rules_);
    live_ = std::move(after);
  }
  Json Without(std::string_view member) {
    Json copy = live_;
    copy.get_object()["metadata"].get_object().erase("managedFields");
    return *Find(copy, member);
  }
  std::vector<std::string> Managers() {
    std::vector<std::string> names;
    const Json* entries = Find(live_, "metadata", "managedFields");
    if (entries == nullptr) return names;
    for (const Json& entry : entries->get_array()) {
      names.emplace_back(FindString(entry, "manager"));
    }
    return names;
  }

  TypeRef type_ = TypeOf("", "pods");
  MergeRules rules_{*type_};
  Json live_;
};

using Paths = std::vector<std::string>;

TEST_F(ApplyTest, RemovesFieldsNoLongerApplied) {
  EXPECT_EQ(Apply("a", R"({"metadata":{"name":"p","labels":{"x":"1","y":"2"}}})"), Paths());
  EXPECT_EQ(Apply("a", R"({"metadata":{"name":"p","labels":{"y":"3"}}})"), Paths());
  EXPECT_EQ(Without("metadata"), J(R"({"name":"p","labels":{"y":"3"}})"));
  EXPECT_EQ(Apply("a", R"({"metadata":{"name":"p"}})"), Paths());
  EXPECT_EQ(Without("metadata"), J(R"({"name":"p"})"));
  EXPECT_EQ(Managers(), Paths());
}

TEST_F(ApplyTest, SharedFieldsStayUntilTheLastOwnerLeaves) {
  Apply("a", R"({"metadata":{"labels":{"x":"1"}}})");
  EXPECT_EQ(Apply("b", R"({"metadata":{"labels":{"x":"1"}}})"), Paths());
  Apply("a", R"({"metadata":{"annotations":{"k":"v"}}})");
  EXPECT_EQ(FindString(live_, "metadata", "labels", "x"), "1");
  Apply("b", R"({"metadata":{"annotations":{"l":"w"}}})");
  EXPECT_EQ(Find(live_, "metadata", "labels"), nullptr);
}

TEST_F(ApplyTest, ForeignValueIsAConflictUnlessForced) {
  Apply("a", R"({"spec":{"containers":[{"name":"c","image":"1"}]}})");
  const char* other = R"({"spec":{"containers":[{"name":"c","image":"2"}]}})";
  EXPECT_EQ(Apply("b", other), Paths{R"(.spec.containers[name="c"].image)"});
  EXPECT_EQ(Apply("b", other, /*force=*/true), Paths());
  // "b" owns the field now.
  EXPECT_EQ(Apply("a", R"({"spec":{"containers":[{"name":"c","image":"1"}]}})").size(), 1u);
  // When "a" stops applying, its own fields are removed; fields of "b" stay.
  EXPECT_EQ(Apply("a", R"({"metadata":{"labels":{"x":"y"}}})"), Paths());
  EXPECT_EQ(Without("spec"), J(R"({"containers":[{"name":"c","image":"2"}]})"));
}

TEST_F(ApplyTest, PlainWritesOwnTheirFields) {
  Update("kubectl-edit", R"({"spec":{"priority":5},"metadata":{"labels":{"x":"1"}}})");
  EXPECT_EQ(Apply("a", R"({"metadata":{"labels":{"x":"2"}}})"), Paths{".metadata.labels.x"});
  EXPECT_EQ(Apply("a", R"({"metadata":{"labels":{"x":"2"}}})", true), Paths());
  Update("kubectl-edit", R"({"metadata":{"labels":{"x":"3"}}})");
  EXPECT_EQ(Apply("a", R"({"metadata":{"labels":{"x":"2"}}})").size(), 1u);
  Update("kubectl-edit", R"({"metadata":{"labels":null}})");
  EXPECT_EQ(Apply("a", R"({"metadata":{"labels":{"x":"2"}}})"), Paths());
}

TEST_F(ApplyTest, UnitesSetsAndAddsAndRemovesKeyedElements) {
  Apply("a", R"({"metadata":{"finalizers":["x/a"]},"spec":{"containers":[{"name":"a"}]}})");
  Apply("b", R"({"metadata":{"finalizers":["x/b"]},"spec":{"containers":[{"name":"b",
      "ports":[{"containerPort":80}]}]}})");
  EXPECT_EQ(*Find(live_, "metadata", "finalizers"), J(R"(["x/a","x/b"])"));
  Apply("b", R"({"spec":{"containers":[{"name":"b","ports":[{"containerPort":81}]}]}})");
  EXPECT_EQ(*Find(live_, "metadata", "finalizers"), J(R"(["x/a"])"));
  EXPECT_EQ(*Find(live_, "spec", "containers"),
            J(R"([{"name":"a"},{"name":"b","ports":[{"containerPort":81}]}])"));
  Apply("b", R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(*Find(live_, "spec", "containers"), J(R"([{"name":"a"}])"));
}

TEST_F(ApplyTest, AtomicListsChangeAsAWhole) {
  Apply("a", R"({"spec":{"tolerations":[{"key":"a"}]}})");
  EXPECT_EQ(Apply("b", R"({"spec":{"tolerations":[{"key":"b"}]}})"), Paths{".spec.tolerations"});
}

TEST_F(ApplyTest, RefusesDuplicateElements) {
  const std::pair<const char*, std::string> cases[] = {
      {R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"a"}]}})",
       R"(.spec.containers: duplicate entries for key [name="a"])"},
      {R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":1},
          {"containerPort":1,"protocol":"UDP"},{"containerPort":1,"protocol":"TCP"}]}]}})",
       R"(.spec.containers[name="a"].ports: duplicate entries for key )"
       R"([containerPort=1,protocol="TCP"])"},
      {R"({"metadata":{"finalizers":["x","y","x"]}})",
       R"(.metadata.finalizers: duplicate entries for key [="x"])"},
      {R"({"spec":{"containers":[{"name":"a","args":["x","x"]}],"tolerations":[{},{}]}})", ""},
  };
  for (const auto& [config, expected] : cases) {
    const auto merged =
        ApplyConfig(*type_, Json(), J(config), false, {"m", "", "v1", Time()}, rules_);
    EXPECT_EQ(merged.ok(), expected.empty()) << config;
    if (merged.ok()) continue;
    EXPECT_TRUE(merged.status().message.ends_with(expected)) << merged.status().message;
  }
}

TEST_F(ApplyTest, RepeatedApplyChangesNothing) {
  const char* config = R"({"metadata":{"labels":{"x":"1"}},"spec":{"containers":[{"name":"c",
      "resources":{},"env":[{"name":"A","value":null}]}]}})";
  Apply("a", config);
  const Json once = live_;
  Apply("a", config);
  EXPECT_EQ(live_, once);
}

// After any sequence of applies, the last configuration of each manager is in effect, except for
// fields that another manager forced, and applying it again changes nothing.
TEST_F(ApplyTest, RandomHistoriesConverge) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    live_ = Json();
    for (int step = 0; step < 8; ++step) {
      JsonObject labels;
      for (const char* key : {"a", "b", "c"}) {
        if (random.Chance(0.5)) labels[key] = random.Chance(0.5) ? "1" : "2";
      }
      JsonArray containers;
      for (const char* name : {"x", "y"}) {
        if (random.Chance(0.5)) containers.push_back({{"name", name}, {"image", "1"}});
      }
      JsonObject config{{"metadata", {{"labels", labels}}}};
      if (!containers.empty()) config["spec"] = {{"containers", containers}};
      const std::string text = WriteJson(config);
      const std::string manager = random.Chance(0.5) ? "m" : "n";
      EXPECT_EQ(Apply(manager, text, /*force=*/true), Paths());
      for (const auto& [key, value] : labels) {
        EXPECT_EQ(*Find(live_, "metadata", "labels", std::string_view(key)), value);
      }
      const Json once = live_;
      EXPECT_EQ(Apply(manager, text), Paths());
      EXPECT_EQ(live_, once);
    }
    Apply("m", "{}", true);
    Apply("n", "{}", true);
    EXPECT_EQ(live_.get_object().contains("spec"), false) << WriteJson(live_);
  }
}

}  // namespace
}  // namespace nos::sim
