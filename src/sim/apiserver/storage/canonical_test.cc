// Answers in the form of the real server, whatever the client has sent.
#include "sim/apiserver/schemas/canonical.h"

#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

using CanonicalTest = ApiServerTest;

TEST(CanonicalQuantityTest, IsTheOneOfKubernetes) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      // clang-format off
      {"0", "0"},          {"0Gi", "0"},        {"1", "1"},           {"1000", "1k"},
      {"1500", "1500"},    {"1000m", "1"},      {"0.5", "500m"},      {"1500m", "1500m"},
      {"2000k", "2M"},     {"1024", "1024"},    {"1024Mi", "1Gi"},    {"1536Mi", "1536Mi"},
      {"0.5Gi", "512Mi"},  {"1Ki", "1Ki"},      {"0.5Ki", "512"},     {"1000Ki", "1000Ki"},
      {"1e3", "1e3"},      {"12e2", "1200"},    {"1E6", "1e6"},       {"5e-1", "500e-3"},
      {"-1024Mi", "-1Gi"}, {"+1", "1"},         {"1E", "1E"},         {"100n", "100n"},
      {"1.5Ki", "1536"},   {"many", "many"},
      // clang-format on
  };
  for (const auto& [given, expected] : cases) {
    EXPECT_EQ(CanonicalQuantity(given), expected) << given;
  }
}

TEST_F(CanonicalTest, QuantitiesAreStrings) {
  const auto made = Post(kPodsPath, R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c",
      "image":"i","resources":{"limits":{"cpu":0.5,"nvidia.com/gpu":1,"memory":"1024Mi"}}}]}})");
  ASSERT_EQ(made.code, 201);
  const Json& resources = made.body.at("spec").at("containers").at(0).at("resources");
  EXPECT_EQ(resources.at("limits"),
            FromText(R"({"cpu":"500m","nvidia.com/gpu":"1","memory":"1Gi"})"));
  EXPECT_EQ(resources.at("requests"), resources.at("limits"));
  EXPECT_EQ(Get(kPodsPath).body.at("items").at(0).at("spec"), made.body.at("spec"));
}

TEST_F(CanonicalTest, RequiredFieldsAreNeverAbsent) {
  ASSERT_EQ(Post("/api/v1/nodes", R"({"metadata":{"name":"n"},"status":{"nodeInfo":{
      "osImage":"x"}}})")
                .code,
            201);
  const Json node = Get("/api/v1/nodes/n").body;
  EXPECT_EQ(FindString(node, "status", "nodeInfo", "osImage"), "x");
  for (const std::string_view field : {"machineID", "systemUUID", "bootID", "kernelVersion",
                                       "kubeProxyVersion", "containerRuntimeVersion"}) {
    const Json* value = Find(node, "status", "nodeInfo", field);
    ASSERT_NE(value, nullptr) << field;
    EXPECT_EQ(*value, Json("")) << field;
  }
  EXPECT_EQ(node.at("status").at("daemonEndpoints"), FromText(R"({"kubeletEndpoint":{"Port":0}})"));
}

TEST_F(CanonicalTest, NullIsAbsentAndTimesAreInUtc) {
  AddPod("a");
  const auto patched = Patch(kPodsPath + std::string("/a/status"), "merge",
                             R"({"status":{"startTime":"2026-01-02T04:04:05.5+01:00"}})");
  EXPECT_EQ(FindString(patched.body, "status", "startTime"), "2026-01-02T03:04:05Z");
  const auto made = Post(kMaps, R"({"metadata":{"name":"m","labels":null},"data":null})");
  ASSERT_EQ(made.code, 201);
  EXPECT_EQ(Find(made.body, "data"), nullptr);
  EXPECT_EQ(Find(made.body, "metadata", "labels"), nullptr);
}

TEST_F(CanonicalTest, AnUpdateWithTheSameValuesChangesNothing) {
  const auto made = Post(kPodsPath, R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c",
      "image":"i","resources":{"limits":{"cpu":"1000m"}}}]}})");
  Json again = made.body;
  again.at("spec").at("containers").at(0).at("resources").at("limits").at("cpu") = 1;
  const auto put = Put(kPodsPath + std::string("/a"), again);
  ASSERT_EQ(put.code, 200);
  EXPECT_EQ(FindString(put.body, "metadata", "resourceVersion"),
            FindString(made.body, "metadata", "resourceVersion"));
}

TEST_F(CanonicalTest, CustomResourcesStayAsTheyAre) {
  ASSERT_EQ(Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", R"({
      "metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
      "names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,
      "storage":true,"schema":{"openAPIV3Schema":{"type":"object",
      "x-kubernetes-preserve-unknown-fields":true}}}]}})")
                .code,
            201);
  const auto made = Post("/apis/example.com/v1/namespaces/default/things",
                         R"({"metadata":{"name":"t"},"spec":{"cpu":1,"memory":"1024Mi"}})");
  EXPECT_EQ(made.body.at("spec"), FromText(R"({"cpu":1,"memory":"1024Mi"})"));
}

}  // namespace
}  // namespace nos::sim
