#include "sim/apiserver/schemas/shape.h"

#include "sim/apiserver/schemas/fields.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

constexpr char kNode[] = "/api/v1/nodes/n";

// A value of a type that the field never accepts.
Json WrongFor(const FieldRule& rule) {
  const bool object = rule.shape == FieldRule::Shape::kMap || rule.message != nullptr ||
                      rule.type == "O" || rule.shape == FieldRule::Shape::kList;
  return object ? Json("x") : Json(JsonArray());
}

TEST(Shape, EveryFieldOfEveryBuiltInKindRefusesAnotherType) {
  for (const TypeRef& type : TypeRegistry().All()) {
    const Message* message = MessageOf(*type);
    ASSERT_NE(message, nullptr) << type->kind << " is served, but not in the table";
    for (const auto& [name, rule] : message->by_name) {
      if (rule->type == "R") continue;
      const Check refusal = CheckShape(*type, {{name, WrongFor(*rule)}});
      ASSERT_TRUE(refusal.has_value()) << type->kind << "." << name;
      EXPECT_EQ(refusal->code, 400);
      EXPECT_EQ(refusal->causes.at(0).field, name);
      EXPECT_FALSE(CheckShape(*type, {{name, nullptr}}).has_value()) << "null is no value";
    }
  }
}

class ShapeTest : public ApiServerTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Post("/api/v1/nodes", R"({"metadata":{"name":"n"},"spec":{"unschedulable":true},
        "status":{"capacity":{"cpu":8,"memory":"32Gi"},"conditions":[{"type":"Ready",
        "lastHeartbeatTime":"2026-01-01T00:00:00Z","status":"True"}]}})")
                  .code,
              201);
    before_ = Get(kNode).body;
  }
  void ExpectRefused(const kube::ApiResponse& response, std::string_view field) {
    EXPECT_EQ(response.code, 400) << WriteJson(response.body);
    EXPECT_EQ(Reason(response), "BadRequest");
    EXPECT_NE(FindString(response.body, "message").find(": " + std::string(field)),
              std::string::npos)
        << WriteJson(response.body);
    EXPECT_EQ(Get(kNode).body, before_);
  }
  Json before_;
};

TEST_F(ShapeTest, AllWritesAreChecked) {
  for (const std::string& path : {std::string(kNode), kNode + std::string("/status")}) {
    ExpectRefused(Patch(path, "merge", R"({"status":"x"})"), "status");
    ExpectRefused(Patch(path, "strategic", R"({"status":{"capacity":[]}})"), "status.capacity");
    ExpectRefused(
        Patch(path, "json", R"([{"op":"replace","path":"/status/conditions","value":{}}])"),
        "status.conditions");
    ExpectRefused(Patch(path + "?fieldManager=m", "apply", R"({"metadata":7})"), "metadata");
    Json object = before_;
    object.get_object()["spec"] = JsonArray();
    ExpectRefused(Put(path, object), "spec");
  }
  ExpectRefused(Post("/api/v1/nodes", R"({"metadata":{"name":"m"},"spec":true})"), "spec");
  ExpectRefused(Post("/api/v1/nodes", R"({"kind":1,"metadata":{"name":"m"}})"), "kind");
  EXPECT_EQ(Get("/api/v1/nodes/m").code, 404);
}

TEST_F(ShapeTest, ReportsTheFieldAndTheExpectedType) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"metadata":{"labels":"x"}})", "metadata.labels: it must be an object, not a string"},
      {R"({"metadata":{"labels":{"a":1}}})",
       "metadata.labels[a]: it must be a string, not a number"},
      {R"({"metadata":{"annotations":{"a":{}}}})",
       "metadata.annotations[a]: it must be a string, not an object"},
      {R"({"metadata":{"finalizers":"x"}})", "metadata.finalizers: it must be a list"},
      {R"({"metadata":{"ownerReferences":[{"controller":"yes"}]}})",
       "metadata.ownerReferences[0].controller: it must be true or false, not a string"},
      {R"({"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":5}]}})",
       "spec.taints[1].key: it must be a string, not a number"},
      {R"({"status":{"allocatable":{"cpu":"lots"}}})",
       "status.allocatable[cpu]: \"lots\" is not a quantity"},
      {R"({"status":{"capacity":{"cpu":true}}})",
       "status.capacity[cpu]: it must be a quantity, not a bool"},
      {R"({"status":{"conditions":[{"lastHeartbeatTime":"soon"}]}})",
       "status.conditions[0].lastHeartbeatTime: \"soon\" is not a time"},
      {R"({"status":{"images":[{"sizeBytes":1.5}]}})",
       "status.images[0].sizeBytes: \"1.5E0\" is not a whole number"},
      {R"({"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":"10250"}}}})",
       "status.daemonEndpoints.kubeletEndpoint.Port: it must be a number, not a string"},
  };
  for (const auto& [patch, message] : cases) ExpectRefused(Patch(kNode, "merge", patch), message);
}

TEST_F(ShapeTest, ChecksPodsSecretsAndOtherMessages) {
  const std::string pod =
      R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i",)";
  ExpectRefused(Post(kPodsPath, pod + R"("resources":{"requests":{"cpu":"1x"}}}]}})"),
                "spec.containers[0].resources.requests[cpu]");
  ExpectRefused(Post(kPodsPath, pod + R"("resources":{"limits":"1"}}]}})"),
                "spec.containers[0].resources.limits");
  ExpectRefused(Post(kPodsPath, pod + R"("livenessProbe":{"exec":"ls"}}]}})"),
                "spec.containers[0].livenessProbe.exec");
  ExpectRefused(Post("/api/v1/namespaces/default/secrets",
                     R"({"metadata":{"name":"s"},"data":{"a":"not base64"}})"),
                "data[a]");
  ExpectRefused(Post("/apis/apps/v1/namespaces/default/deployments",
                     R"({"metadata":{"name":"d"},"spec":{"replicas":"3"}})"),
                "spec.replicas");
  ASSERT_EQ(AddPod("p").code, 201);
  const std::string path = kPodsPath + std::string("/p");
  ExpectRefused(Post(path + "/binding", R"({"target":"n"})"), "target");
  ExpectRefused(Post(path + "/eviction", R"({"deleteOptions":{"gracePeriodSeconds":"0"}})"),
                "deleteOptions.gracePeriodSeconds");
  ExpectRefused(Delete(path, R"({"preconditions":{"uid":7}})"), "preconditions.uid");
  EXPECT_EQ(Get(path).code, 200);
}

TEST_F(ShapeTest, ChecksOnlyMetadataOfCustomResources) {
  ASSERT_EQ(Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 R"({"metadata":{"name":"things.nos.example.com"},"spec":{
      "group":"nos.example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
      "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
        "type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})")
                .code,
            201);
  const char* things = "/apis/nos.example.com/v1/things";
  ExpectRefused(Post(things, R"({"metadata":{"name":"t","labels":[]}})"), "metadata.labels");
  EXPECT_EQ(Post(things, R"({"metadata":{"name":"t"},"spec":"anything"})").code, 201);
}

TEST_F(ShapeTest, AcceptsValuesThatARealServerAccepts) {
  EXPECT_EQ(Patch(kNode, "merge", R"({"metadata":{"labels":null},
      "status":{"capacity":{"cpu":1.5,"memory":"1e3","pods":"110"},"images":[{"sizeBytes":0}],
      "conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":null,
                     "lastTransitionTime":"2026-01-01T00:00:00.5+01:00"}]}})")
                .code,
            200);
}

}  // namespace
}  // namespace nos::sim
