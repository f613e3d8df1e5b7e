// Unknown fields, and the parameters that select their treatment.
#include "sim/apiserver/schemas/unknown.h"

#include "sim/apiserver/schemas/fields.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

using Strings = std::vector<std::string>;

Json ValueFor(const FieldRule& rule, int depth);

// An object with every field of a message, down to some depth.
Json FullObject(const Message& message, int depth) {
  JsonObject object;
  for (const auto& [name, rule] : message.by_name) object[name] = ValueFor(*rule, depth);
  return object;
}

Json ValueFor(const FieldRule& rule, int depth) {
  Json value = {{"anything", {{"goes", 1}}}};
  if (rule.message != nullptr) {
    value = depth == 0 ? Json(JsonObject()) : FullObject(*rule.message, depth - 1);
  }
  if (rule.shape == FieldRule::Shape::kList) return JsonArray{value, value};
  return rule.shape == FieldRule::Shape::kMap ? Json{{"key", value}} : value;
}

TEST(PruneUnknown, KeepsAllFieldsOfEachKind) {
  for (const TypeRef& type : TypeRegistry().All()) {
    Json object = FullObject(*MessageOf(*type), 6);
    object.get_object()["kind"] = type->kind;
    object.get_object()["apiVersion"] = type->ApiVersion();
    const Json before = object;
    EXPECT_EQ(PruneUnknown(*type, object), Strings{}) << type->kind;
    EXPECT_EQ(object, before) << type->kind;
  }
}

TEST(PruneUnknown, KeepsContentThatTheSchemaDoesNotDescribe) {
  const TypeRegistry types;
  for (const char* source : {"gcePersistentDisk", "cephfs", "iscsi", "flexVolume", "azureFile"}) {
    Json pod = {{"spec", {{"volumes", JsonArray{{{"name", "v"}, {source, {{"any", 1}}}}}}}}};
    EXPECT_EQ(PruneUnknown(*types.Find("", "v1", "pods"), pod), Strings{}) << source;
  }
  Json claims = FromText(R"({"spec":{"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim",
      "apiVersion":"v1","metadata":{"name":"c"}}]}})");
  EXPECT_EQ(PruneUnknown(*types.Find("apps", "v1", "statefulsets"), claims), Strings{});
}

TEST(DuplicateKeys, AreReportedWithTheirPaths) {
  const std::pair<const char*, Strings> cases[] = {
      {R"({"a":1,"b":{"a":1}})", {}},
      {R"({"a":1,"a":2})", {"a"}},
      {R"({"a":[{"x":1},[1,2],{"x":1,"\u0078":"y"}],"b":null})", {"a[2].x"}},
      {R"({"a":{"b":{},"b":{}},"a":3})", {"a.b", "a"}},
      {R"([{"a":1},{"a":1}])", {}},
      {"7", {}},
  };
  for (const auto& [text, keys] : cases) EXPECT_EQ(DuplicateKeys(text), keys) << text;
}

TEST(DuplicateKeys, AreReportedUpToALimit) {
  std::string text = "{\"" + std::string(5000, 'k') + "\":{";
  for (int i = 0; i < 1000; ++i) text += "\"a\":1,";
  text += "\"a\":1}}";
  const Strings keys = DuplicateKeys(text);
  EXPECT_EQ(keys.size(), kMaxUnknownReported);
  EXPECT_LE(keys[0].size(), kMaxPathReported + 3);
  EXPECT_EQ(Truncated(std::string(199, 'x') + "\u00e9y"), std::string(199, 'x') + "...");
}

class UnknownTest : public ApiServerTest {
 protected:
  static constexpr char kTypo[] = R"({"metadata":{"name":"p"},"spec":{"contaners":[],
      "containers":[{"name":"c","image":"i","resorces":{"limits":{"nvidia.com/gpu":1}}}]}})";
  static constexpr char kFaults[] =
      R"(unknown field "spec.containers[0].resorces", unknown field "spec.contaners")";
  std::string Pods(const std::string& query) { return kPodsPath + ("?" + query); }
};

TEST_F(UnknownTest, StrictRefusesUnknownFields) {
  const auto refused = Post(Pods("fieldValidation=Strict"), kTypo);
  EXPECT_EQ(refused.code, 400);
  EXPECT_EQ(
      FindString(refused.body, "message"),
      std::string("Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: ") +
          kFaults);
  EXPECT_EQ(Get(kPodsPath + std::string("/p")).code, 404);
}

TEST_F(UnknownTest, WarnAndIgnoreDropUnknownFields) {
  for (const std::string query : {"", "fieldValidation=Warn", "fieldValidation=Ignore"}) {
    const auto created = Post(Pods(query), kTypo);
    ASSERT_EQ(created.code, 201) << WriteJson(created.body);
    EXPECT_EQ(Find(created.body, "spec", "contaners"), nullptr);
    EXPECT_EQ(Find(Find(created.body, "spec", "containers")->at(0), "resorces"), nullptr);
    const Strings warned = query.ends_with("Ignore")
                               ? Strings{}
                               : Strings{"unknown field \"spec.containers[0].resorces\"",
                                         "unknown field \"spec.contaners\""};
    EXPECT_EQ(created.warnings, warned) << query;
    Delete(kPodsPath + std::string("/p"));
  }
}

TEST_F(UnknownTest, AllWritesDropUnknownFields) {
  ASSERT_EQ(AddPod("p").code, 201);
  const std::string path = kPodsPath + std::string("/p");
  Json object = Get(path).body;
  MakeObject(object, "metadata")["lables"] = JsonObject();
  const kube::ApiResponse answers[] = {
      Put(path, object), Patch(path, "merge", R"({"metadata":{"lables":{}}})"),
      Patch(path, "strategic", R"({"metadata":{"lables":{}}})"),
      Patch(path, "json", R"([{"op":"add","path":"/metadata/lables","value":{}}])")};
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.code, 200) << WriteJson(answer.body);
    EXPECT_EQ(Find(answer.body, "metadata", "lables"), nullptr);
    EXPECT_EQ(answer.warnings, Strings{"unknown field \"metadata.lables\""});
  }
  const auto status =
      Patch(path + "/status?fieldValidation=Strict", "merge", R"({"status":{"fase":"Running"}})");
  EXPECT_EQ(status.code, 400);
  const auto applied = Patch(path + "?fieldManager=m&fieldValidation=Ignore", "apply",
                             R"({"spec":{"nodSelector":{"a":"b"}}})");
  EXPECT_EQ(applied.code, 500);
  EXPECT_EQ(FindString(applied.body, "message"),
            "failed to create typed patch object (default/p; v1, Kind=Pod): .spec.nodSelector: "
            "field not declared in schema");
}

TEST_F(UnknownTest, RefusesUnknownParameterValuesWithoutWriting) {
  for (const std::string query : {"dryRun=None", "dryRun=all", "dryRun=", "dryRun=All&dryRun=x",
                                  "fieldValidation=strict", "fieldValidation=x"}) {
    const auto refused = Post(kMaps + ("?" + query), R"({"metadata":{"name":"m"}})");
    EXPECT_EQ(refused.code, 422) << query;
    EXPECT_EQ(Reason(refused), "Invalid");
    EXPECT_EQ(Get(kMaps + std::string("/m")).code, 404) << query;
  }
  EXPECT_EQ(FindString(Post(kMaps + std::string("?dryRun=x"), "{}").body, "message"),
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \"x\": "
            "supported values: \"All\"");
  ASSERT_EQ(Post(kMaps, R"({"metadata":{"name":"m"}})").code, 201);
  const std::string path = kMaps + std::string("/m");
  EXPECT_EQ(Delete(path + "?dryRun=true").code, 422);
  EXPECT_EQ(Delete(path, R"({"dryRun":["Some"]})").code, 422);
  EXPECT_EQ(Delete(kMaps, R"({"dryRun":["Some"]})").code, 422);
  EXPECT_EQ(Patch(path + "?dryRun=x", "merge", R"({"data":{"a":"b"}})").code, 422);
  EXPECT_EQ(Delete(path, R"({"dryRun":["All"]})").code, 200);
  EXPECT_EQ(Delete(kMaps, R"({"dryRun":["All"]})").code, 200);
  AddPod("p");
  EXPECT_EQ(
      Post(kPodsPath + std::string("/p/eviction"), R"({"deleteOptions":{"dryRun":["All"]}})").code,
      201);
  EXPECT_EQ(Get(kPodsPath + std::string("/p")).code, 200);
  EXPECT_EQ(Find(Get(path).body, "data"), nullptr);
}

}  // namespace
}  // namespace nos::sim
