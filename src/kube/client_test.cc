#include "kube/client.h"

#include <gtest/gtest.h>

#include <deque>

namespace nos::kube {
namespace {

// Answers with queued responses and records the requests.
class ScriptedTransport final : public Transport {
 public:
  Result<ApiResponse> Do(const ApiRequest& request) override {
    requests.push_back(request);
    if (answers.empty()) return Status(Code::kUnavailable, "no answer");
    ApiResponse answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override {
    requests.push_back(request);
    return Status(Code::kUnavailable, "no watch");
  }

  std::deque<ApiResponse> answers;
  std::vector<ApiRequest> requests;
};

Json Parsed(std::string_view text) { return ParseJson(text).value(); }

class ClientTest : public testing::Test {
 protected:
  ScriptedTransport transport_;
  Client client_{transport_};
};

TEST_F(ClientTest, BuildsPathsOfCoreAndGroupResources) {
  EXPECT_EQ(PathOf(kPods, "a", "b", "status"), "/api/v1/namespaces/a/pods/b/status");
  EXPECT_EQ(PathOf(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(PathOf(kNodes, "ignored", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(PathOf(kLeases, "a", "l"), "/apis/coordination.k8s.io/v1/namespaces/a/leases/l");
}

TEST_F(ClientTest, ListFollowsPagesAndSendsResourceVersionOnce) {
  transport_.answers.push_back(
      {200, Parsed(R"({"metadata":{"resourceVersion":"7","continue":"t"},"items":[{"n":1}]})")});
  transport_.answers.push_back(
      {200, Parsed(R"({"metadata":{"resourceVersion":"7"},"items":[{"n":2}]})")});
  ListOptions options;
  options.label_selector = "a=b";
  options.resource_version = "5";
  options.limit = 1;
  const auto list = client_.List(kPods, "", options);
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->resource_version, "7");
  ASSERT_EQ(transport_.requests.size(), 2u);
  EXPECT_EQ(transport_.requests[0].Query("resourceVersion"), "5");
  EXPECT_EQ(transport_.requests[1].Query("resourceVersion"), "");
  EXPECT_EQ(transport_.requests[1].Query("continue"), "t");
  EXPECT_EQ(transport_.requests[1].Query("labelSelector"), "a=b");
}

TEST_F(ClientTest, ListRestartsWithoutPagesWhenPageExpires) {
  transport_.answers.push_back(
      {200, Parsed(R"({"metadata":{"resourceVersion":"7","continue":"t"},"items":[{"n":1}]})")});
  transport_.answers.push_back({410, Parsed(R"({"reason":"Expired","message":"too old"})")});
  transport_.answers.push_back(
      {200, Parsed(R"({"metadata":{"resourceVersion":"9"},"items":[{"n":1},{"n":2}]})")});
  const auto list = client_.List(kPods, "", {});
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(transport_.requests[2].Query("limit"), "");
}

TEST_F(ClientTest, MapsHttpStatusToCodes) {
  const std::pair<ApiResponse, Code> cases[] = {
      {{404, Parsed(R"({"reason":"NotFound","message":"pods \"a\" not found"})")}, Code::kNotFound},
      {{409, Parsed(R"({"reason":"AlreadyExists"})")}, Code::kAlreadyExists},
      {{409, Parsed(R"({"reason":"Conflict"})")}, Code::kConflict},
      {{410, nullptr}, Code::kUnavailable},
      {{429, nullptr}, Code::kUnavailable},
      {{503, nullptr}, Code::kUnavailable},
      {{401, nullptr}, Code::kPermission},
      {{403, nullptr}, Code::kPermission},
      {{422, nullptr}, Code::kInvalid},
      {{400, nullptr}, Code::kInvalid},
      {{201, nullptr}, Code::kOk},
  };
  for (const auto& [response, code] : cases) EXPECT_EQ(StatusOf(response).code(), code);
  EXPECT_EQ(StatusOf(cases[0].first).message(), "pods \"a\" not found");
  EXPECT_NE(StatusOf(cases[5].first).message().find("503"), std::string::npos);
}

// The API server has carried out the request.
TEST_F(ClientTest, GarbledAnswerIsNoRefusal) {
  transport_.answers.push_back({200, nullptr, {}, "{", {}});
  EXPECT_EQ(client_.Get(kPods, "a", "p").status().code(), Code::kUnavailable);
}

TEST_F(ClientTest, BindPostsABindingAndReportsAConflict) {
  transport_.answers.push_back({409, Parsed(R"({"reason":"Conflict"})")});
  EXPECT_EQ(client_.Bind("a", "p", "n").code(), Code::kConflict);
  const ApiRequest& request = transport_.requests.at(0);
  EXPECT_EQ(request.path, "/api/v1/namespaces/a/pods/p/binding");
  EXPECT_EQ(FindString(request.body, "target", "name"), "n");
}

TEST_F(ClientTest, PatchNamesItsTypeAndSubresource) {
  transport_.answers.push_back({200, Parsed("{}")});
  const Json patch = Parsed(R"({"status":{}})");
  ASSERT_TRUE(client_.Patch(kNodes, "", "n", PatchType::kStrategic, patch, "status").ok());
  EXPECT_EQ(transport_.requests[0].content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(transport_.requests[0].path, "/api/v1/nodes/n/status");
}

TEST_F(ClientTest, AnEmptyNameNeverBecomesACollectionRequest) {
  EXPECT_EQ(client_.Get(kPods, "a", "").status().code(), Code::kInvalid);
  EXPECT_EQ(client_.Delete(kPods, "a", "").code(), Code::kInvalid);
  EXPECT_EQ(client_.Update(kPods, "a", Parsed("{}")).status().code(), Code::kInvalid);
  EXPECT_TRUE(transport_.requests.empty());
}

}  // namespace
}  // namespace nos::kube
