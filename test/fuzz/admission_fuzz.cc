// What a client of the webhook may send. Whatever it is, the answer is either an error of HTTP or
// an AdmissionReview that answers what was asked, and the next is answered alike.
#include <string>

#include "codec/json.h"
#include "controllers/quota_admission.h"
#include "fuzz.h"

using namespace nos;               // NOLINT
using namespace nos::controllers;  // NOLINT

namespace {

std::vector<quota::SharedQuota> Quotas() {
  std::vector<quota::SharedQuota> quotas;
  for (const char* text :
       {R"({"metadata": {"namespace": "a", "name": "q"}, "spec": {"min": {"cpu": 1}}})",
        R"({"metadata": {"namespace": "b", "name": "q"},
            "spec": {"min": {"cpu": 1}, "parent": "a/q"}})"}) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    Require(ReadElasticQuota(text, *quota).ok(), "the quotas of the test can be read");
    quotas.push_back(std::move(quota));
  }
  return quotas;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body = FuzzText(data, size);
  QuotaAdmission admission;
  admission.SetQuotas(Quotas());
  const QuotaAdmission::Answer answer = admission.Review(body);
  Require(!answer.body.empty(), "there is an answer");
  Require(answer.body == admission.Review(body).body, "it is the same again");
  if (answer.code != 200) {
    Require(answer.code == 400 && !answer.allowed, "what cannot be read is the client's fault");
    return 0;
  }
  const auto asked = ParseJson(body), said = ParseJson(answer.body);
  Require(said.ok(), "an answer is JSON");
  // It is read without a tree: what is broken where nothing is asked for may go unseen.
  Require(
      !asked.ok() || FindString(*said, "response", "uid") == FindString(*asked, "request", "uid"),
      "what was asked is answered");
  const Json* allowed = Find(*said, "response", "allowed");
  Require(allowed != nullptr && allowed->is_bool() && allowed->get_bool() == answer.allowed,
          "it says whether it is allowed");
  Require(answer.allowed || !FindString(*said, "response", "status", "message").empty(),
          "a refusal says why");
  return 0;
}
