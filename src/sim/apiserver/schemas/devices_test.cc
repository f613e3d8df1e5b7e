// The kinds of resource.k8s.io: the rules on which allocation of claims depends.
#include "sim/apiserver/objects/tree.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kClaim[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c";
constexpr char kClaimStatus[] =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status";
constexpr char kAllocation[] = R"({"devices":{"results":[
    {"request":"gpu","driver":"gpu.example.com","pool":"n","device":"d0"}]}})";

class DevicesTest : public ApiServerTest {
 protected:
  kube::ApiResponse AddClaim(const std::string& metadata = R"("name":"c")") {
    return Post(kClaims, "{\"metadata\":{" + metadata + R"(},"spec":{"devices":{"requests":[
        {"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}})");
  }
  kube::ApiResponse Allocate(const std::string& consumers = "") {
    return Patch(kClaimStatus, "merge",
                 R"({"status":{"allocation":)" + std::string(kAllocation) + R"(,"reservedFor":[)" +
                     consumers + "]}}");
  }
  static std::string Pod(const std::string& name) {
    return R"({"resource":"pods","name":")" + name + R"(","uid":"uid-)" + name + R"("})";
  }
  kube::ApiResponse AddSlice(const std::string& name, const std::string& more) {
    return Post(kSlices, R"({"metadata":{"name":")" + name +
                             R"("},"spec":{"driver":"gpu.example.com",
        "pool":{"name":"n","generation":1,"resourceSliceCount":2},"nodeName":"n",)" +
                             more + "}}");
  }
  static std::vector<std::string> Fields(const kube::ApiResponse& refused) {
    std::vector<std::string> fields;
    const Json* causes = Find(refused.body, "details", "causes");
    if (causes == nullptr) return fields;
    for (const Json& cause : causes->get_array()) fields.emplace_back(FindString(cause, "field"));
    return fields;
  }
  using Names = std::vector<std::string>;
};

TEST_F(DevicesTest, ClaimsHaveDefaults) {
  const auto claim = AddClaim();
  ASSERT_EQ(claim.code, 201) << WriteJson(claim.body);
  const Json& request = Find(claim.body, "spec", "devices", "requests")->at(0);
  EXPECT_EQ(FindString(request, "exactly", "allocationMode"), "ExactCount");
  EXPECT_EQ(*Find(request, "exactly", "count"), 1);
  EXPECT_EQ(*Find(claim.body, "status"), JsonObject());
}

TEST_F(DevicesTest, StatusAndSpecAreWrittenSeparately) {
  AddClaim();
  const auto main = Patch(kClaim, "merge",
                          R"({"metadata":{"finalizers":["x.example.com/y"]},
      "status":{"allocation":)" +
                              std::string(kAllocation) + "}}");
  ASSERT_EQ(main.code, 200) << WriteJson(main.body);
  EXPECT_EQ(Find(main.body, "status", "allocation"), nullptr);
  EXPECT_EQ(Find(main.body, "metadata", "finalizers")->get_array().size(), 1U);
  const auto status = Patch(kClaimStatus, "merge",
                            R"({"metadata":{"finalizers":[]},
      "status":{"allocation":)" +
                                std::string(kAllocation) + "}}");
  ASSERT_EQ(status.code, 200) << WriteJson(status.body);
  EXPECT_NE(Find(status.body, "status", "allocation"), nullptr);
  EXPECT_EQ(Find(status.body, "metadata", "finalizers")->get_array().size(), 1U);
}

TEST_F(DevicesTest, SpecOfAClaimIsImmutable) {
  AddClaim();
  const auto changed = Patch(kClaim, "json", R"([{"op":"replace",
      "path":"/spec/devices/requests/0/exactly/count","value":2}])");
  EXPECT_EQ(changed.code, 422);
  EXPECT_EQ(Fields(changed), (Names{"spec"}));
}

TEST_F(DevicesTest, AllocationIsOnlyCleared) {
  AddClaim();
  ASSERT_EQ(Allocate(Pod("a")).code, 200);
  const auto changed = Patch(kClaimStatus, "json", R"([{"op":"replace",
      "path":"/status/allocation/devices/results/0/device","value":"d1"}])");
  EXPECT_EQ(changed.code, 422);
  EXPECT_EQ(Fields(changed), (Names{"status.allocation"}));
  const auto cleared_in_use = Patch(kClaimStatus, "merge", R"({"status":{"allocation":null}})");
  EXPECT_EQ(cleared_in_use.code, 422);
  EXPECT_EQ(Fields(cleared_in_use), (Names{"status.reservedFor"}));
  const auto cleared =
      Patch(kClaimStatus, "merge", R"({"status":{"allocation":null,"reservedFor":null}})");
  ASSERT_EQ(cleared.code, 200) << WriteJson(cleared.body);
  EXPECT_EQ(Allocate(Pod("b")).code, 200) << "and it is allocated again";
}

TEST_F(DevicesTest, ReservedForNeedsAnAllocation) {
  AddClaim();
  const auto refused =
      Patch(kClaimStatus, "merge", R"({"status":{"reservedFor":[)" + Pod("a") + "]}}");
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(Fields(refused), (Names{"status.reservedFor"}));
}

TEST_F(DevicesTest, AllocationNamesARequestAndADevice) {
  AddClaim();
  const auto refused = Patch(kClaimStatus, "merge", R"({"status":{"allocation":{"devices":{
      "results":[{"request":"other","driver":"gpu.example.com","pool":"n","device":"D_0"}]}}}})");
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(Fields(refused), (Names{"status.allocation.devices.results[0].request",
                                    "status.allocation.devices.results[0].device"}));
}

TEST_F(DevicesTest, ConsumersMergeByUid) {
  AddClaim();
  ASSERT_EQ(Allocate(Pod("a")).code, 200);
  const auto added =
      Patch(kClaimStatus, "strategic", R"({"status":{"reservedFor":[)" + Pod("b") + "]}}");
  ASSERT_EQ(added.code, 200) << WriteJson(added.body);
  EXPECT_EQ(Find(added.body, "status", "reservedFor")->get_array().size(), 2U);
  const auto removed = Patch(kClaimStatus, "strategic",
                             R"({"status":{"reservedFor":[{"$patch":"delete","uid":"uid-a"}]}})");
  ASSERT_EQ(removed.code, 200) << WriteJson(removed.body);
  const JsonArray& left = Find(removed.body, "status", "reservedFor")->get_array();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(FindString(left[0], "name"), "b");
  const auto results = Patch(kClaimStatus, "strategic", R"({"status":{"allocation":{"devices":{
      "results":[{"request":"gpu","driver":"gpu.example.com","pool":"n","device":"d1"}]}}}})");
  EXPECT_EQ(results.code, 422) << "results are replaced as a whole, which changes the allocation";
}

TEST_F(DevicesTest, ClaimStaysUntilItsFinalizersAreGone) {
  AddClaim(R"("name":"c","finalizers":["resource.kubernetes.io/delete-protection"])");
  ASSERT_EQ(Allocate(Pod("a")).code, 200);
  EXPECT_EQ(Delete(kClaim).code, 200);
  const auto marked = Get(kClaim);
  ASSERT_EQ(marked.code, 200);
  EXPECT_FALSE(FindString(marked.body, "metadata", "deletionTimestamp").empty());
  const auto joined =
      Patch(kClaimStatus, "strategic", R"({"status":{"reservedFor":[)" + Pod("b") + "]}}");
  EXPECT_EQ(joined.code, 422) << "a claim that is being deleted gets no new consumers";
  EXPECT_EQ(Patch(kClaim, "merge", R"({"metadata":{"finalizers":null}})").code, 200);
  EXPECT_EQ(Get(kClaim).code, 404);
}

TEST_F(DevicesTest, SliceHasDevicesOrCounters) {
  const std::string devices = R"("devices":[{"name":"d0","attributes":{"type":{"string":"gpu"}},
      "consumesCounters":[{"counterSet":"s","counters":{"slots":{"value":"1"}}}]}])";
  const std::string counters =
      R"("sharedCounters":[{"name":"s","counters":{"slots":{"value":"8"}}}])";
  const auto both = AddSlice("a", devices + "," + counters);
  EXPECT_EQ(both.code, 422);
  EXPECT_EQ(Fields(both), (Names{"spec"}));
  const auto one = AddSlice("a", devices);
  ASSERT_EQ(one.code, 201) << WriteJson(one.body);
  const Json& device = Find(one.body, "spec", "devices")->at(0);
  EXPECT_EQ(FindString(device, "attributes", "type", "string"), "gpu");
  EXPECT_EQ(AddSlice("b", counters).code, 201);
  EXPECT_EQ(Names(DevicesTest::ApiServerTest::Names(
                Get(kSlices + std::string("?fieldSelector=spec.nodeName=n")))),
            (Names{"a", "b"}));
  const auto moved = Patch(kSlices + std::string("/a"), "merge",
                           R"({"spec":{"driver":"other.example.com","pool":{"name":"m"}}})");
  EXPECT_EQ(Fields(moved), (Names{"spec.driver", "spec.pool.name"}));
}

TEST_F(DevicesTest, SliceIsValid) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("devices":[{"name":"d"},{"name":"d"}])", "spec.devices[1].name"},
      {R"("devices":[{"name":"D"}])", "spec.devices[0].name"},
      {R"("allNodes":true)", "spec"},
      {R"("sharedCounters":[{"name":"s"}])", "spec.sharedCounters[0].counters"},
      {R"("devices":[{"name":"d","taints":[{"key":"k","effect":"Never"}]}])",
       "spec.devices[0].taints[0].effect"},
  };
  for (const auto& [more, field] : cases) {
    EXPECT_EQ(Fields(AddSlice("a", more)), (Names{field})) << more;
  }
  std::string many, costly;
  for (int i = 0; i < 65; ++i) {
    const std::string name = R"({"name":"d)" + std::to_string(i) + "\"";
    many += (i == 0 ? "" : ",") + name + "}";
    costly += (i == 0 ? "" : ",") + name + R"(,"taints":[{"key":"k","effect":"NoSchedule"}]})";
  }
  EXPECT_EQ(AddSlice("many", "\"devices\":[" + many + "]").code, 201);
  EXPECT_EQ(Fields(AddSlice("costly", "\"devices\":[" + costly + "]")), (Names{"spec.devices"}));
}

TEST_F(DevicesTest, RequestsAreValid) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"name":"r"})", "spec.devices.requests[0]"},
      {R"({"name":"r","exactly":{}})", "spec.devices.requests[0].exactly.deviceClassName"},
      {R"({"name":"r","exactly":{"deviceClassName":"c","count":-1}})",
       "spec.devices.requests[0].exactly.count"},
      {R"({"name":"r","exactly":{"deviceClassName":"c","allocationMode":"All","count":1}})",
       "spec.devices.requests[0].exactly.count"},
      {R"({"name":"r","firstAvailable":[{"name":"x"}]})",
       "spec.devices.requests[0].firstAvailable[0].deviceClassName"},
      {R"({"name":"r","exactly":{"deviceClassName":"c","selectors":[{}]}})",
       "spec.devices.requests[0].exactly.selectors[0].cel"},
  };
  for (const auto& [request, field] : cases) {
    const auto refused = Post(
        kClaims, R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[)" + request + "]}}}");
    EXPECT_EQ(Fields(refused), (Names{field})) << request;
  }
  const auto constraint = Post(kClaims, R"({"metadata":{"name":"c"},"spec":{"devices":{
      "requests":[{"name":"r","exactly":{"deviceClassName":"c"}}],
      "constraints":[{"requests":["s"],"matchAttribute":"a/b"},{}]}}})");
  EXPECT_EQ(Fields(constraint),
            (Names{"spec.devices.constraints[0].requests", "spec.devices.constraints[1]"}));
}

TEST_F(DevicesTest, OtherKindsAreServed) {
  const std::string base = "/apis/resource.k8s.io/v1/";
  EXPECT_EQ(Post(base + "deviceclasses", R"({"metadata":{"name":"gpu.example.com"},"spec":{
      "selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}],
      "extendedResourceName":"example.com/gpu"}})")
                .code,
            201);
  EXPECT_EQ(Post(base + "devicetaintrules", R"({"metadata":{"name":"r"},"spec":{
      "deviceSelector":{"pool":"n"},"taint":{"key":"k","effect":"NoSchedule"}}})")
                .code,
            201);
  EXPECT_EQ(Post(base + "devicetaintrules", R"({"metadata":{"name":"s"},"spec":{}})").code, 422);
  const std::string templates = base + "namespaces/default/resourceclaimtemplates";
  const auto made = Post(templates, R"({"metadata":{"name":"t"},"spec":{"spec":{"devices":{
      "requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com"}}]}}}})");
  ASSERT_EQ(made.code, 201) << WriteJson(made.body);
  EXPECT_EQ(
      *Find(Find(made.body, "spec", "spec", "devices", "requests")->at(0), "exactly", "count"), 1);
  const auto changed = Patch(templates + "/t", "merge", R"({"spec":{"spec":{"devices":{}}}})");
  EXPECT_EQ(Fields(changed).size(), 0U) << "an empty patch changes nothing";
  EXPECT_EQ(
      Fields(Patch(templates + "/t", "merge", R"({"spec":{"spec":{"devices":{"requests":[]}}}})")),
      (Names{"spec.spec"}));
}

TEST_F(DevicesTest, PodsNameTheirClaims) {
  EXPECT_EQ(AddPod("a", R"(,"resourceClaims":[{"name":"g","resourceClaimTemplateName":"t"}])").code,
            201);
  EXPECT_EQ(Fields(AddPod("b", R"(,"resourceClaims":[{"name":"g"}])")),
            (Names{"spec.resourceClaims[0]"}));
  const auto stranger = Post(kPodsPath, R"({"metadata":{"name":"c"},"spec":{"containers":[
      {"name":"c","image":"i","resources":{"claims":[{"name":"g"}]}}]}})");
  EXPECT_EQ(Fields(stranger), (Names{"spec.containers[0].resources.claims"}));
  const auto one =
      Patch(kPodsPath + std::string("/a/status"), "strategic",
            R"({"status":{"resourceClaimStatuses":[{"name":"g","resourceClaimName":"x"}]}})");
  EXPECT_EQ(one.code, 200);
  const auto two =
      Patch(kPodsPath + std::string("/a/status"), "strategic",
            R"({"status":{"resourceClaimStatuses":[{"name":"h","resourceClaimName":"y"}]}})");
  EXPECT_EQ(Find(two.body, "status", "resourceClaimStatuses")->get_array().size(), 2U);
}

TEST_F(DevicesTest, UnknownFieldsInMapsOfMessagesAreDropped) {
  const auto slice =
      AddSlice("a", R"("devices":[{"name":"d","attributes":{"x":{"int":1,"size":2}}}])");
  ASSERT_EQ(slice.code, 201);
  EXPECT_EQ(*Find(Find(slice.body, "spec", "devices")->at(0), "attributes", "x"),
            (JsonObject{{"int", 1}}));
}

TEST_F(DevicesTest, ColumnsAreThoseOfKubectl) {
  accept_ = "application/json;as=Table;v=v1;g=meta.k8s.io";
  AddClaim();
  AddSlice("a", R"("devices":[{"name":"d"}])");
  const auto cells = [&](const std::string& path) {
    return Find(Get(path).body, "rows")->at(0).at("cells").get_array();
  };
  EXPECT_EQ(cells(kClaims), (JsonArray{"c", "pending", "0s"}));
  Allocate(Pod("a"));
  EXPECT_EQ(cells(kClaims), (JsonArray{"c", "allocated,reserved", "0s"}));
  EXPECT_EQ(cells(kSlices), (JsonArray{"a", "n", "gpu.example.com", "n", "0s"}));
}

}  // namespace
}  // namespace nos::sim
