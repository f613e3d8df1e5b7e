#include "sim/apiserver/server/webhook.h"

#include "codec/base64.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

// A server with a webhook for pods that have the annotation "ask".
class WebhookTest : public ApiServerTest {
 protected:
  void SetUp() override {
    server_->SetPodWebhook(
        {"test.example.com",
         [](const Json& pod) { return Find(pod, "metadata", "annotations", "ask") != nullptr; },
         [this](const std::string& review) {
           asked_.push_back(FromText(review));
           const std::string uid(FindString(asked_.back(), "request", "uid"));
           return std::pair(code_, R"({"response":{"uid":")" + uid + R"(",)" + answer_ + "}}");
         }});
  }
  void Patches(const std::string& patch) {
    answer_ = R"("allowed":true,"patchType":"JSONPatch","warnings":["so it is"],"patch":")" +
              EncodeBase64(patch) + "\"";
  }
  kube::ApiResponse Add(const std::string& name) { return Post(kPodsPath, Pod(name)); }
  static std::string Pod(const std::string& name) {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
           R"(","annotations":{"ask":""}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
  }
  static std::string Message(const kube::ApiResponse& response) {
    return std::string(FindString(response.body, "message"));
  }

  std::vector<Json> asked_;
  int code_ = 200;
  std::string answer_ = R"("allowed":true)";
};

TEST_F(WebhookTest, CreatesPodsAsPatchedByTheWebhook) {
  Patches(R"([{"op":"add","path":"/metadata/annotations/patched","value":"yes"}])");
  const kube::ApiResponse made = Add("a");
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(FindString(made.body, "metadata", "annotations", "patched"), "yes");
  EXPECT_EQ(made.warnings, std::vector<std::string>{"so it is"});
  ASSERT_EQ(asked_.size(), 1u);
  const Json& question = *Find(asked_[0], "request");
  EXPECT_EQ(FindString(question, "operation"), "CREATE");
  EXPECT_EQ(FindString(question, "namespace"), "default");
  EXPECT_EQ(FindString(question, "kind", "kind"), "Pod");
  EXPECT_EQ(FindString(question, "object", "metadata", "name"), "a");
}

TEST_F(WebhookTest, SendsOnlyMatchingPods) {
  EXPECT_EQ(AddPod("plain").code, 201);
  EXPECT_EQ(Post(kMaps, R"({"metadata":{"name":"m","annotations":{"ask":""}}})").code, 201);
  EXPECT_EQ(Patch(std::string(kPodsPath) + "/plain", "merge",
                  R"({"metadata":{"annotations":{"ask":""}}})")
                .code,
            200);
  EXPECT_TRUE(asked_.empty()) << "only of pods that match, when they are made";
}

TEST_F(WebhookTest, ServerSideApplyCallsWebhookOnCreateOnly) {
  const std::string target = std::string(kPodsPath) + "/a?fieldManager=me";
  Patches(R"([{"op":"add","path":"/metadata/annotations/patched","value":"yes"}])");
  const kube::ApiResponse made = Patch(target, "apply", Pod("a"));
  EXPECT_EQ(made.code, 201) << WriteJson(made.body);
  EXPECT_EQ(FindString(made.body, "metadata", "annotations", "patched"), "yes");
  (void)Patch(target, "apply", Pod("a"));
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(WebhookTest, RefusesPodsThatTheWebhookDenies) {
  answer_ = R"("allowed":false,"status":{"code":422,"reason":"Invalid","message":"too much"})";
  const kube::ApiResponse refused = Add("a");
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(Message(refused),
            "admission webhook \"test.example.com\" denied the request: too much");
  EXPECT_EQ(Get(std::string(kPodsPath) + "/a").code, 404);
}

TEST_F(WebhookTest, RefusesPodsWithoutAnAnswer) {
  code_ = 503;
  EXPECT_EQ(Add("a").code, 500);
  code_ = 200;
  const std::pair<const char*, const char*> cases[] = {
      {R"("allowed":true,"patch":"!")", "not base64"},
      {R"("allowed":true},{)", "JSON: syntax error at byte 46"},
      {R"("uid":"another","allowed":true)", "it has answered something else"},
  };
  for (const auto& [answer, why] : cases) {
    answer_ = answer;
    const kube::ApiResponse refused = Add("a");
    EXPECT_EQ(refused.code, 500) << answer;
    EXPECT_EQ(
        Message(refused),
        std::string("Internal error occurred: failed calling webhook \"test.example.com\": ") +
            why);
  }
  Patches(R"([{"op":"remove","path":"/nowhere"}])");
  EXPECT_EQ(Add("a").code, 500);
  EXPECT_EQ(Get(std::string(kPodsPath) + "/a").code, 404);
  server_->SetPodWebhook({});
  EXPECT_EQ(Add("a").code, 201) << "nobody is asked any more";
}

}  // namespace
}  // namespace nos::sim
