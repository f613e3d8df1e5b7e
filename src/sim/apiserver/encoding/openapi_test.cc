#include "sim/apiserver/encoding/openapi.h"

#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

class OpenApiTest : public ApiServerTest {
 protected:
  // Follows a path such as "spec.containers" from a kind, through references, like `kubectl
  // explain`.
  static Json Explain(const Json& document, std::string_view kind, std::string_view path) {
    const JsonObject& schemas = Find(document, "components", "schemas")->get_object();
    Json at;
    for (const auto& [name, schema] : schemas) {
      const Json* kinds = Find(schema, "x-kubernetes-group-version-kind");
      if (kinds != nullptr && FindString(kinds->at(0), "kind") == kind) at = schema;
    }
    while (!path.empty()) {
      const size_t dot = std::min(path.find('.'), path.size());
      const Json* property = Find(at, "properties", path.substr(0, dot));
      if (property == nullptr) return {};
      at = Json(*property);
      if (const Json* items = Find(at, "items")) at = Json(*items);
      const std::string ref(FindString(at, "$ref"));
      if (!ref.empty()) at = schemas.at(ref.substr(ref.rfind('/') + 1));
      path.remove_prefix(std::min(path.size(), dot + 1));
    }
    return at;
  }
};

TEST_F(OpenApiTest, AllReferencesResolve) {
  const Json index = Get("/openapi/v3").body;
  for (const auto& [key, url] : Find(index, "paths")->get_object()) {
    const Json document = Get(FindString(url, "serverRelativeURL")).body;
    const std::string text = WriteJson(document);
    const std::string mark = "\"#/components/schemas/";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const size_t begin = at + mark.size();
      const std::string name = text.substr(begin, text.find('"', begin) - begin);
      EXPECT_NE(Find(document, "components", "schemas", name), nullptr) << key << " " << name;
    }
  }
}

TEST_F(OpenApiTest, DescribesFieldsOfBuiltInKinds) {
  const Json core = Get("/openapi/v3/api/v1").body;
  EXPECT_EQ(FindString(Explain(core, "Pod", "spec.containers.image"), "type"), "string");
  EXPECT_EQ(FindString(Explain(core, "Pod", "spec.priority"), "type"), "integer");
  EXPECT_EQ(FindString(Explain(core, "Pod", "spec.containers.livenessProbe.exec.command"), "type"),
            "string");
  EXPECT_NE(Find(Explain(core, "Node", "status.capacity"), "additionalProperties"), nullptr);
  EXPECT_EQ(FindString(Explain(core, "Node", "kind"), "type"), "string");
  EXPECT_TRUE(Explain(core, "Node", "status.nothing").is_null());
  const Json apps = Get("/openapi/v3/apis/apps/v1").body;
  EXPECT_EQ(FindString(Explain(apps, "Deployment", "spec.template.spec.nodeName"), "type"),
            "string");
}

TEST_F(OpenApiTest, DescribesFieldsOfCustomKinds) {
  ASSERT_EQ(Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 R"({"metadata":{"name":"things.nos.example.com"},"spec":{
      "group":"nos.example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
      "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
        "type":"object","description":"A thing.","properties":{"spec":{"type":"object",
          "properties":{"size":{"type":"integer"}}}}}}}]}})")
                .code,
            201);
  const Json document = Get("/openapi/v3/apis/nos.example.com/v1").body;
  EXPECT_EQ(FindString(Explain(document, "Thing", ""), "description"), "A thing.");
  EXPECT_EQ(FindString(Explain(document, "Thing", "spec.size"), "type"), "integer");
  EXPECT_EQ(FindString(Explain(document, "Thing", "metadata.name"), "type"), "string");
}

}  // namespace
}  // namespace nos::sim
