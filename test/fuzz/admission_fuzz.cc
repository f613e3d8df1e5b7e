// Arbitrary input to the webhook: the answer is an HTTP error or an AdmissionReview that answers
// the request, and the same input is answered alike again.
#include <string>

#include "codec/json.h"
#include "controllers/quota_admission.h"
#include "controllers/slice_admission.h"
#include "target.h"

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

// A cluster with one unused A100, which stays unused for the next request.
AdmissionAnswer ChooseSlice(std::string_view body) {
  cluster::Node node;
  Require(ReadNode(R"({"metadata": {"name": "n", "labels": {
            "nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.count": "1",
            "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}})",
                   node)
              .ok(),
          "the node of the test can be read");
  const ManualClock clock{Time(std::chrono::seconds(1'000'000))};
  const SliceAdmission::Cluster cluster{
      std::make_shared<std::vector<std::shared_ptr<const cluster::Node>>>(
          1, std::make_shared<const cluster::Node>(std::move(node))),
      std::make_shared<std::vector<std::shared_ptr<const cluster::Pod>>>()};
  SliceAdmission admission(gpu::Catalogue::Builtin(), clock, [&] { return cluster; });
  return admission.Review(body);
}

void Check(std::string_view body, const AdmissionAnswer& answer) {
  Require(!answer.body.empty(), "there is an answer");
  if (answer.code != 200) {
    Require(answer.code == 400 && !answer.allowed, "what cannot be read is the client's fault");
    return;
  }
  const auto asked = ParseJson(body), said = ParseJson(answer.body);
  Require(said.ok(), "an answer is JSON");
  // The body is read without a tree, so errors in skipped values may be missed.
  Require(
      !asked.ok() || FindString(*said, "response", "uid") == FindString(*asked, "request", "uid"),
      "what was asked is answered");
  const Json* allowed = Find(*said, "response", "allowed");
  Require(allowed != nullptr && allowed->is_bool() && allowed->get_bool() == answer.allowed,
          "it says whether it is allowed");
  Require(answer.allowed || !FindString(*said, "response", "status", "message").empty(),
          "a refusal says why");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body = FuzzText(data, size);
  QuotaAdmission admission;
  admission.SetQuotas(Quotas());
  const AdmissionAnswer answer = admission.Review(body);
  Check(body, answer);
  Require(answer.body == admission.Review(body).body, "it is the same again");
  const AdmissionAnswer slice = ChooseSlice(body);
  Check(body, slice);
  Require(slice.body == ChooseSlice(body).body, "a slice is chosen alike");
  return 0;
}
