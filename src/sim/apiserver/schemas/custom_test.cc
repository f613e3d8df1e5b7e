// CustomResourceDefinitions, Tables and discovery.
#include "sim/apiserver/objects/json_path.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

constexpr char kDefinition[] = R"({"metadata":{"name":"quotas.nos.example.com"},"spec":{
    "group":"nos.example.com","scope":"Namespaced",
    "names":{"plural":"quotas","kind":"Quota","shortNames":["q"]},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
      "additionalPrinterColumns":[{"name":"Min","type":"integer","jsonPath":".spec.min"},
        {"name":"Ok","type":"string","jsonPath":".status.conditions[?(@.type==\"Ok\")].status"}],
      "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","required":["min"],"properties":{
          "min":{"type":"integer","minimum":0},"mode":{"type":"string","enum":["a","b"],
          "default":"a"},"any":{"x-kubernetes-int-or-string":true},
          "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
          "map":{"type":"object","additionalProperties":{"type":"string"}}}},
        "status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";
constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr char kQuotas[] = "/apis/nos.example.com/v1/namespaces/default/quotas";

class CustomTest : public ApiServerTest {
 protected:
  void SetUp() override { ASSERT_EQ(Post(kDefinitions, kDefinition).code, 201); }
  static const Json& FirstCause(const kube::ApiResponse& refused) {
    return Find(refused.body, "details", "causes")->at(0);
  }
};

TEST_F(CustomTest, DefinitionIsServedAtOnceAndDeletedWithItsObjects) {
  const auto definition = Get(kDefinitions + std::string("/quotas.nos.example.com"));
  EXPECT_EQ(FindString(Find(definition.body, "status", "conditions")->at(1), "type"),
            "Established");
  EXPECT_EQ(Post(kQuotas, R"({"metadata":{"name":"q"},"spec":{"min":1}})").code, 201);
  EXPECT_EQ(Get("/apis/nos.example.com/v1").code, 200);
  auto watch = Watch(kQuotas);
  Delete(kDefinitions + std::string("/quotas.nos.example.com"));
  EXPECT_TRUE(watch->Ended() || !Read(*watch).empty());
  EXPECT_EQ(Get(kQuotas).code, 404);
  EXPECT_EQ(Get("/apis/nos.example.com/v1").code, 404);
  ASSERT_EQ(Post(kDefinitions, kDefinition).code, 201);
  EXPECT_TRUE(Names(Get(kQuotas)).empty());
}

TEST_F(CustomTest, FinalizerOfAnObjectKeepsItsDefinition) {
  Post(kQuotas, R"({"metadata":{"name":"q","finalizers":["x.y/z"]},"spec":{"min":1}})");
  const std::string path = kDefinitions + std::string("/quotas.nos.example.com");
  Delete(path);
  EXPECT_EQ(Get(path).code, 200);
  Patch(kQuotas + std::string("/q"), "merge", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(Get(path).code, 404);
}

TEST_F(CustomTest, SchemaPrunesSetsDefaultsAndRefuses) {
  const auto created = Post(kQuotas, R"({"metadata":{"name":"q"},"rubbish":1,
      "spec":{"min":1,"unknown":2,"free":{"x":1},"map":{"a":"b"},"any":"50%"}})");
  ASSERT_EQ(created.code, 201) << WriteJson(created.body);
  EXPECT_EQ(Find(created.body, "rubbish"), nullptr);
  EXPECT_EQ(Find(created.body, "spec", "unknown"), nullptr);
  EXPECT_EQ(FindString(created.body, "spec", "mode"), "a");
  EXPECT_EQ(*Find(created.body, "spec", "free", "x"), 1);
  const auto strict = Post(std::string(kQuotas) + "?fieldValidation=Strict",
                           R"({"metadata":{"name":"r"},"spec":{"min":1,"unknown":2}})");
  EXPECT_EQ(strict.code, 400);
  EXPECT_NE(FindString(strict.body, "message").find("spec.unknown"), std::string_view::npos);
  for (const char* spec : {R"({})", R"({"min":-1})", R"({"min":"1"})", R"({"min":1,"mode":"c"})",
                           R"({"min":1,"any":1.5})", R"({"min":1,"map":{"a":1}})", R"([])", "7"}) {
    const auto refused =
        Post(kQuotas, std::string(R"({"metadata":{"name":"x"},"spec":)") + spec + "}");
    EXPECT_EQ(refused.code, 422) << spec;
  }
}

// The definition with additional properties of spec.
std::string DefinitionWith(const std::string& properties) {
  std::string text = kDefinition;
  const std::string at = R"("min":{"type":"integer","minimum":0},)";
  return text.replace(text.find(at), at.size(), at + properties);
}

TEST_F(CustomTest, SchemaBoundsTextsNumbersAndMaps) {
  const std::string definition = DefinitionWith(R"(
      "word":{"type":"string","pattern":"^[a-z]+$","maxLength":3},
      "part":{"type":"string","pattern":"b"},
      "even":{"type":"integer","multipleOf":2},"tenth":{"type":"number","multipleOf":0.1},
      "few":{"type":"object","minProperties":1,"maxProperties":2,
             "additionalProperties":{"type":"string","pattern":"^x"}},
      "amount":{"x-kubernetes-int-or-string":true,"pattern":"^[0-9]+%$",
                "anyOf":[{"type":"integer"},{"type":"string"}]},)");
  const auto defined =
      Put(kDefinitions + std::string("/quotas.nos.example.com"), FromText(definition));
  ASSERT_EQ(defined.code, 200);
  EXPECT_TRUE(defined.warnings.empty()) << defined.warnings[0];
  int n = 0;
  const auto create = [&](const std::string& more) {
    return Post(kQuotas, R"({"metadata":{"name":"q)" + std::to_string(++n) +
                             R"("},"spec":{"min":1,)" + more + "}}");
  };
  for (const char* good :
       {R"("word":"abc")", R"("part":"abc")", R"("even":-4)", R"("even":0)", R"("tenth":0.3)",
        R"("tenth":1e6)", R"("few":{"a":"x"})", R"("amount":7)", R"("amount":"7%")"}) {
    const auto answer = create(good);
    EXPECT_EQ(answer.code, 201) << good << WriteJson(answer.body);
  }
  for (const char* bad :
       {R"("word":"ab1")", R"("word":"abcd")", R"("word":"")", R"("part":"ac")", R"("even":3)",
        R"("tenth":0.35)", R"("few":{})", R"("few":{"a":"x","b":"x","c":"x"})",
        R"("few":{"a":"y"})", R"("amount":"7")"}) {
    EXPECT_EQ(create(bad).code, 422) << bad;
  }
  const auto refused = create(R"("word":"A")");
  EXPECT_EQ(FindString(FirstCause(refused), "message"),
            R"(Invalid value: "A": spec.word in body should match '^[a-z]+$')");
}

TEST_F(CustomTest, RefusesMalformedPatternsAndBoundsHostileOnes) {
  const auto define = [&](const std::string& pattern) {
    return Put(
        kDefinitions + std::string("/quotas.nos.example.com"),
        FromText(DefinitionWith(R"("word":{"type":"string","pattern":")" + pattern + R"("},)")));
  };
  const auto refused = define("(a");
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(FindString(FirstCause(refused), "field"),
            "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.word.pattern");
  EXPECT_EQ(define("(?=a)").code, 422) << "Go knows no look-ahead";
  ASSERT_EQ(define("^(a+)+$").code, 200);
  EXPECT_EQ(Post(kQuotas, R"({"metadata":{"name":"slow"},"spec":{"min":1,"word":")" +
                              std::string(100'000, 'a') + R"(b"}})")
                .code,
            422);
  const auto large = define("((a{1000}){1000}){1000}");
  EXPECT_TRUE(large.code == 422 || !large.warnings.empty()) << "applied, or said that it is not";
}

TEST_F(CustomTest, WarnsOfRulesThatAreNotApplied) {
  const std::string text = DefinitionWith(R"(
      "when":{"type":"string","format":"date-time"},"size":{"type":"integer","format":"int32"},
      "list":{"type":"array","items":{"type":"object","x-kubernetes-validations":[{"rule":"true"}],
              "oneOf":[{"required":["a"]},{"required":["b"]}]}},)");
  const std::vector<std::string> expected = {
      "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.when: not applied by "
      "this "
      "simulated API server: format",
      "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.list.items: not applied "
      "by "
      "this simulated API server: oneOf, x-kubernetes-validations"};
  const std::string path = kDefinitions + std::string("/quotas.nos.example.com");
  EXPECT_EQ(Put(path, FromText(text)).warnings, expected);
  EXPECT_EQ(Patch(path, "merge", R"({"metadata":{"labels":{"a":"b"}}})").warnings, expected);
  ASSERT_EQ(Delete(path).code, 200);
  EXPECT_EQ(Post(kDefinitions, text).warnings, expected);
  EXPECT_TRUE(Post(kQuotas, R"({"metadata":{"name":"q"},"spec":{"min":1}})").warnings.empty());
}

TEST_F(CustomTest, StatusIsSeparateAndStrategicPatchesAreRefused) {
  Post(kQuotas, R"({"metadata":{"name":"q"},"spec":{"min":1},"status":{"x":1}})");
  const std::string path = kQuotas + std::string("/q");
  EXPECT_EQ(Find(Get(path).body, "status"), nullptr);
  EXPECT_EQ(Patch(path + "/status", "merge", R"({"status":{"x":1}})").code, 200);
  const auto object = Get(path);
  EXPECT_EQ(*Find(object.body, "status", "x"), 1);
  EXPECT_EQ(*Find(object.body, "metadata", "generation"), 1);
  EXPECT_EQ(Patch(path, "strategic", R"({})").code, 415);
  EXPECT_EQ(Patch(path, "json", R"([{"op":"replace","path":"/spec/min","value":2}])").code, 200);
  EXPECT_EQ(*Find(Get(path).body, "metadata", "generation"), 2);
}

TEST_F(CustomTest, ServerSideApplyMergesListsByTheSchema) {
  std::string text = kDefinition;
  const std::string at = R"("spec":{"type":"object","required":["min"],"properties":{)";
  text.replace(text.find(at), at.size(),
               at + R"("keyed":{"type":"array","x-kubernetes-list-type":"map",
                   "x-kubernetes-list-map-keys":["id"],"items":{"type":"object","properties":
                   {"id":{"type":"string"},"v":{"type":"integer"}}}},
                   "plain":{"type":"array","items":{"type":"string"}},)");
  Json definition = FromText(text);
  MakeObject(definition, "metadata")["name"] = "quotas.nos.example.com";
  ASSERT_EQ(Put(kDefinitions + std::string("/quotas.nos.example.com"), definition).code, 200);
  const std::string path = kQuotas + std::string("/q?fieldManager=");
  EXPECT_EQ(
      Patch(path + "a", "apply", R"({"spec":{"min":1,"keyed":[{"id":"x","v":1}],"plain":["p"]}})")
          .code,
      201);
  EXPECT_EQ(Patch(path + "b", "apply", R"({"spec":{"keyed":[{"id":"y","v":2}]}})").code, 200);
  const auto conflict = Patch(path + "b", "apply", R"({"spec":{"plain":["q"]}})");
  EXPECT_EQ(conflict.code, 409);
  EXPECT_EQ(FindString(Find(conflict.body, "details", "causes")->at(0), "field"), ".spec.plain");
  EXPECT_EQ(*Find(Get(kQuotas + std::string("/q")).body, "spec", "keyed"),
            FromText(R"([{"id":"x","v":1},{"id":"y","v":2}])"));
}

TEST_F(CustomTest, RefusesDuplicatesInSetsAndKeyedLists) {
  std::string text = kDefinition;
  const std::string at = R"("min":{"type":"integer","minimum":0},)";
  text.replace(text.find(at), at.size(),
               at + R"("set":{"type":"array","x-kubernetes-list-type":"set",
                   "items":{"type":"string"}},"keyed":{"type":"array",
                   "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
                   "items":{"type":"object","properties":{"id":{"type":"string"},
                   "v":{"type":"integer"}}}},"plain":{"type":"array",
                   "items":{"type":"string"}},)");
  ASSERT_EQ(Put(kDefinitions + std::string("/quotas.nos.example.com"), FromText(text)).code, 200);
  const std::pair<const char*, const char*> cases[] = {
      {R"("set":["a","b","a"])", "spec.set[2]"},
      {R"("keyed":[{"id":"a","v":1},{"id":"a","v":2}])", "spec.keyed[1]"},
      {R"("set":["a","b"],"keyed":[{"id":"a"},{"id":"b"}],"plain":["a","a"])", ""},
  };
  for (const auto& [fields, fault] : cases) {
    const auto answer =
        Post(kQuotas, std::string(R"({"metadata":{"name":"q"},"spec":{"min":1,)") + fields + "}}");
    EXPECT_EQ(answer.code, std::string_view(fault).empty() ? 201 : 422) << fields;
    if (answer.code != 422) continue;
    const Json& cause = Find(answer.body, "details", "causes")->at(0);
    EXPECT_EQ(FindString(cause, "field"), fault);
    EXPECT_EQ(FindString(cause, "reason"), "FieldValueDuplicate");
  }
}

class ScaleTest : public CustomTest {
 protected:
  static std::string Definition(const std::string& scale) {
    std::string text = kDefinition;
    const std::string at = R"("subresources":{"status":{})";
    return text.replace(text.find(at), at.size(), at + ",\"scale\":" + scale);
  }
  void SetUp() override {
    ASSERT_EQ(Post(kDefinitions, Definition(R"({"specReplicasPath":".spec.free.n",
        "statusReplicasPath":".status.n","labelSelectorPath":".status.s"})"))
                  .code,
              201);
    ASSERT_EQ(Post(kQuotas, R"({"metadata":{"name":"q"},"spec":{"min":1,"free":{"n":2}}})").code,
              201);
  }
  const std::string object_ = kQuotas + std::string("/q");
  const std::string scale_ = object_ + "/scale";
};

TEST_F(ScaleTest, ReadsAndSetsReplicasAtThePathsOfTheDefinition) {
  Patch(object_ + "/status", "merge", R"({"status":{"n":1,"s":"a=b"}})");
  const auto read = Get(scale_);
  ASSERT_EQ(read.code, 200) << WriteJson(read.body);
  EXPECT_EQ(FindString(read.body, "apiVersion"), "autoscaling/v1");
  EXPECT_EQ(FindString(read.body, "metadata", "name"), "q");
  EXPECT_EQ(*Find(read.body, "spec"), FromText(R"({"replicas":2})"));
  EXPECT_EQ(*Find(read.body, "status"), FromText(R"({"replicas":1,"selector":"a=b"})"));
  const auto patched = Patch(scale_, "merge", R"({"spec":{"replicas":5}})");
  EXPECT_EQ(*Find(patched.body, "spec", "replicas"), 5);
  EXPECT_EQ(*Find(Get(object_).body, "spec", "free", "n"), 5);
  EXPECT_EQ(*Find(Get(object_).body, "status", "n"), 1);
  EXPECT_EQ(*Find(Get(object_).body, "metadata", "generation"), 2);
  Json scale = patched.body;
  MakeObject(scale, "spec")["replicas"] = 6;
  EXPECT_EQ(Put(scale_ + "?dryRun=All", scale).code, 200);
  EXPECT_EQ(*Find(Get(object_).body, "spec", "free", "n"), 5);
  EXPECT_EQ(Put(scale_, scale).code, 200);
  EXPECT_EQ(*Find(Get(object_).body, "spec", "free", "n"), 6);
  EXPECT_EQ(Put(scale_, scale).code, 409) << "its version is old";
}

TEST_F(ScaleTest, RefusesInvalidScales) {
  EXPECT_EQ(Patch(scale_, "merge", R"({"spec":{"replicas":-1}})").code, 422);
  EXPECT_EQ(Patch(scale_, "merge", R"({"spec":{"replicas":3000000000}})").code, 422);
  EXPECT_EQ(Patch(scale_, "merge", R"({"spec":{"replicas":"3"}})").code, 400);
  EXPECT_EQ(Patch(scale_, "merge", R"({"kind":"Pod"})").code, 400);
  EXPECT_EQ(Put(scale_, JsonArray()).code, 400);
  EXPECT_EQ(Delete(scale_).code, 405);
  EXPECT_EQ(Get(kQuotas + std::string("/none/scale")).code, 404);
  Patch(object_, "merge", R"({"spec":{"free":null}})");
  EXPECT_EQ(Get(scale_).code, 500);
  EXPECT_EQ(Get("/api/v1/namespaces/default/pods/p/scale").code, 404);
  const std::string path = kDefinitions + std::string("/quotas.nos.example.com");
  for (const char* scale : {"{}", R"({"specReplicasPath":".spec.n"})",
                            R"({"specReplicasPath":".spec.n[0]","statusReplicasPath":".status.n"})",
                            R"({"specReplicasPath":".spec.","statusReplicasPath":".status.n"})",
                            R"({"specReplicasPath":".status.n","statusReplicasPath":".status.n"})",
                            R"({"specReplicasPath":".spec.n","statusReplicasPath":".status.n",
                                "labelSelectorPath":".metadata.name"})"}) {
    EXPECT_EQ(Put(path, FromText(Definition(scale))).code, 422) << scale;
  }
}

TEST_F(CustomTest, BadDefinitionsAreRefused) {
  const std::pair<const char*, const char*> edits[] = {
      {"nos.example.com\",\"scope", "apps\",\"scope"},  // a group of Kubernetes itself
      {"\"Namespaced\"", "\"Everywhere\""},
      {"\"storage\":true", "\"storage\":false"},
      {"\"kind\":\"Quota\"", "\"kind\":\"\""},
      {"\"plural\":\"quotas\"", "\"plural\":\"others\""},
      {"openAPIV3Schema", "noSchema"},
  };
  Delete(kDefinitions + std::string("/quotas.nos.example.com"));
  for (const auto& [from, to] : edits) {
    std::string text = kDefinition;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::string_view(from).size(), to);
    EXPECT_EQ(Post(kDefinitions, text).code, 422) << to;
  }
}

TEST_F(CustomTest, TablesHaveTheColumnsOfTheDefinition) {
  Post(kQuotas, R"({"metadata":{"name":"q"},"spec":{"min":4}})");
  Patch(kQuotas + std::string("/q/status"), "merge",
        R"({"status":{"conditions":[{"type":"No","status":"False"},
            {"type":"Ok","status":"True"}]}})");
  accept_ = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const auto table = Get(kQuotas);
  EXPECT_EQ(FindString(table.body, "kind"), "Table");
  EXPECT_EQ(*Find(Find(table.body, "rows")->at(0), "cells"), FromText(R"(["q",4,"True"])"));
}

class TableTest : public ApiServerTest {
 protected:
  std::string Cells(const std::string& path) {
    accept_ = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const auto table = Get(path);
    accept_.clear();
    EXPECT_EQ(table.code, 200);
    std::string text;
    for (const Json& cell : Find(Find(table.body, "rows")->at(0), "cells")->get_array()) {
      text += (cell.is_string() ? std::string(cell.get_string()) : WriteJson(cell)) + "|";
    }
    return text;
  }
};

TEST_F(TableTest, PodColumnsMatchKubectl) {
  AddPod("a");
  const std::string path = kPodsPath + std::string("/a");
  clock_.Advance(std::chrono::seconds(65));
  EXPECT_EQ(Cells(path), "a|0/1|Pending|0|65s|<none>|<none>|<none>|<none>|");
  Bind("a", "n1");
  const auto status = [&](const std::string& text) {
    ASSERT_EQ(Patch(path + "/status", "merge", R"({"status":)" + text + "}").code, 200);
  };
  status(R"({"phase":"Running","podIP":"10.0.0.1","containerStatuses":[
      {"name":"c","ready":true,"restartCount":2,"state":{"running":{}},
       "lastState":{"terminated":{"finishedAt":"2026-01-02T03:04:05Z"}}}]})");
  EXPECT_EQ(Cells(path), "a|1/1|Running|2 (65s ago)|65s|10.0.0.1|n1|<none>|<none>|");
  status(R"({"containerStatuses":[{"name":"c","ready":false,"restartCount":0,
      "state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})");
  EXPECT_EQ(Cells(path).substr(0, 28), "a|0/1|CrashLoopBackOff|0|65s");
  status(R"({"phase":"Succeeded","containerStatuses":[{"name":"c","ready":false,"restartCount":0,
      "state":{"terminated":{"reason":"Completed","exitCode":0}}}]})");
  EXPECT_EQ(Cells(path).substr(0, 21), "a|0/1|Completed|0|65s");
}

TEST_F(TableTest, RendersNodesEventsAndLeases) {
  Post("/api/v1/nodes", R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/w":""}},
      "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
      "nodeInfo":{"kubeletVersion":"v1"}}})");
  EXPECT_EQ(Cells("/api/v1/nodes").substr(0, 35), "n|Ready,SchedulingDisabled|w|0s|v1|");
  Post("/apis/coordination.k8s.io/v1/namespaces/default/leases",
       R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"me"}})");
  EXPECT_EQ(Cells("/apis/coordination.k8s.io/v1/leases"), "l|me|0s|");
  Post("/api/v1/namespaces/default/events", R"({"metadata":{"name":"e"},"type":"Normal",
      "reason":"R","message":"m ","involvedObject":{"kind":"Pod","name":"p"},
      "source":{"component":"s"},"count":3,"lastTimestamp":"2026-01-02T03:04:00Z"})");
  EXPECT_EQ(Cells("/api/v1/events"), "5s|Normal|R|pod/p||s|m|<unknown>|3|e|");
}

TEST_F(TableTest, RendersMalformedObjects) {
  // Every stored object can be listed.
  const std::string paths[] = {"/api/v1/nodes", "/api/v1/namespaces/default/events",
                               "/api/v1/namespaces/default/services",
                               "/apis/batch/v1/namespaces/default/jobs"};
  const std::string bodies[] = {
      R"({"metadata":{"name":"x","labels":{}},"spec":7,"status":"x","involvedObject":[],
          "source":3,"count":"x","lastTimestamp":5})",
      R"({"metadata":{"name":"y"},"spec":{"ports":[7,{"port":{}}],"taints":null},
          "status":{"conditions":[3],"addresses":{"a":1},"nodeInfo":[]},"type":9})"};
  for (const std::string& path : paths) {
    for (const std::string& body : bodies) (void)Post(path, body);
    accept_ = "application/json;as=Table;v=v1;g=meta.k8s.io";
    EXPECT_EQ(Get(path).code, 200) << path;
    accept_.clear();
  }
}

TEST(JsonPathTest, EvaluatesThePathsOfColumns) {
  const Json value = FromText(R"({"a":{"b.c":1,"d":[{"t":"x","v":1},{"t":"y","v":2}]},"e":[5,6]})");
  const auto text = [&](std::string_view path) {
    std::string all;
    for (const Json* found : EvaluatePath(path, value)) all += WriteJson(*found) + " ";
    return all;
  };
  EXPECT_EQ(text(".a['b.c']"), "1 ");
  EXPECT_EQ(text(R"(.a.b\.c)"), "1 ");
  EXPECT_EQ(text(".e[0]"), "5 ");
  EXPECT_EQ(text(".e[-1]"), "6 ");
  EXPECT_EQ(text(".e[*]"), "5 6 ");
  EXPECT_EQ(text(".a.d[*].v"), "1 2 ");
  EXPECT_EQ(text(".a.d[?(@.t==\"y\")].v"), "2 ");
  for (const char* bad :
       {".x", "..", ".a[", ".a[?(", ".a[?(@.t==)]", "[", "[]", ".e[9]", ".e[x]"}) {
    EXPECT_EQ(text(bad), "") << bad;
  }
}

TEST_F(CustomTest, DiscoveryListsServedResources) {
  EXPECT_EQ(FindString(Get("/version").body, "major"), "1");
  EXPECT_EQ(Get("/readyz").body, "ok");
  const auto has = [](const Json& list, std::string_view key, std::string_view name) {
    for (const Json& entry : Find(list, key)->get_array()) {
      if (FindString(entry, "name") == name) return true;
    }
    return false;
  };
  const auto core = Get("/api/v1");
  for (const char* name : {"pods", "pods/binding", "pods/eviction", "nodes/status"}) {
    EXPECT_TRUE(has(core.body, "resources", name)) << name;
  }
  EXPECT_TRUE(has(Get("/apis").body, "groups", "nos.example.com"));
  EXPECT_TRUE(has(Get("/apis/nos.example.com/v1").body, "resources", "quotas/status"));
  EXPECT_NE(Find(Get("/openapi/v3").body, "paths", "apis/nos.example.com/v1"), nullptr);
  EXPECT_EQ(Get("/openapi/v3/apis/nos.example.com/v1").code, 200);
  EXPECT_EQ(Get("/openapi/v3/apis/none/v1").code, 404);
  EXPECT_EQ(Get("/apis/none").code, 404);
}

}  // namespace
}  // namespace nos::sim
