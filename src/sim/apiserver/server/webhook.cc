#include "sim/apiserver/server/webhook.h"

#include <fmt/core.h>

#include "codec/base64.h"
#include "codec/json.h"
#include "sim/apiserver/patching/patch_json.h"

namespace nos::sim {
namespace {

constexpr std::string_view kReviewVersion = "admission.k8s.io/v1", kReviewKind = "AdmissionReview";

std::string ReviewOf(std::string_view ns, const std::string& uid, const kube::ApiRequest& request) {
  const JsonObject kind{{"group", ""}, {"version", "v1"}, {"kind", "Pod"}};
  const JsonObject resource{{"group", ""}, {"version", "v1"}, {"resource", "pods"}};
  return WriteJson(
      JsonObject{{"apiVersion", kReviewVersion},
                 {"kind", kReviewKind},
                 {"request", JsonObject{{"uid", uid},
                                        {"kind", kind},
                                        {"resource", resource},
                                        {"operation", "CREATE"},
                                        {"namespace", ns},
                                        {"name", FindString(request.body, "metadata", "name")},
                                        {"object", request.body},
                                        {"oldObject", nullptr},
                                        {"dryRun", !request.Query("dryRun").empty()}}}});
}

// Wording: k8s.io/apiserver/pkg/admission/plugin/webhook/errors
Refusal NoAnswer(const PodWebhook& webhook, std::string_view why) {
  return MakeRefusal(
      500, "InternalError",
      fmt::format("Internal error occurred: failed calling webhook \"{}\": {}", webhook.name, why));
}

Refusal Denied(const PodWebhook& webhook, const Json& response) {
  Refusal refusal;
  const Json* code = Find(response, "status", "code");
  if (code != nullptr && code->is_int64() && code->get_int64() >= 400 && code->get_int64() < 600) {
    refusal.code = static_cast<int>(code->get_int64());
  }
  refusal.reason = std::string(FindString(response, "status", "reason"));
  const std::string_view why = FindString(response, "status", "message");
  refusal.message = fmt::format("admission webhook \"{}\" denied the request{}{}", webhook.name,
                                why.empty() ? "" : ": ", why);
  return refusal;
}

// Error: kInvalid if the patch is not a list of operations.
Result<Json> PatchOf(const Json& response) {
  const std::string_view encoded = FindString(response, "patch");
  if (encoded.empty()) return Json(JsonArray());
  NOS_ASSIGN(const std::string text, DecodeBase64(encoded));
  return ParseJson(text);
}

// True if the request creates a pod, or creates it if it does not exist.
bool MakesPod(const ApiPath& path, const kube::ApiRequest& request) {
  const bool pods = path.plural == "pods" && path.group.empty() && !path.ns.empty();
  if (!pods || !path.subresource.empty()) return false;
  if (path.name.empty()) return request.method == "POST";
  return request.method == "PATCH" && request.content_type.starts_with("application/apply-patch");
}

// Lets the webhook change the pod in `request`. After a refusal the request is unchanged.
Check AskWebhook(const PodWebhook& webhook, std::string_view ns, const std::string& uid,
                 kube::ApiRequest& request, std::vector<std::string>& warnings) {
  const auto [code, body] = webhook.ask(ReviewOf(ns, uid, request));
  if (code != 200) return NoAnswer(webhook, body);
  const auto review = ParseJson(body);
  if (!review.ok()) return NoAnswer(webhook, review.status().message());
  const Json* response = Find(*review, "response");
  if (response == nullptr || FindString(*response, "uid") != uid) {
    return NoAnswer(webhook, "it has answered something else");
  }
  const Json* allowed = Find(*response, "allowed");
  if (allowed == nullptr || *allowed != true) return Denied(webhook, *response);
  const auto patch = PatchOf(*response);
  if (!patch.ok()) return NoAnswer(webhook, patch.status().message());
  Json changed = request.body;
  if (const auto failed = JsonPatch(changed, *patch)) return NoAnswer(webhook, failed->message);
  request.body = std::move(changed);
  const Json* list = Find(*response, "warnings");
  if (list == nullptr || !list->is_array()) return std::nullopt;
  for (const Json& warning : list->get_array()) {
    if (warning.is_string()) warnings.emplace_back(View(warning.get_string()));
  }
  return std::nullopt;
}

}  // namespace

void PodAdmission::Set(PodWebhook webhook) {
  const std::scoped_lock lock(mutex_);
  webhook_ = webhook.matches ? std::make_shared<const PodWebhook>(std::move(webhook)) : nullptr;
}

PodAdmission::Outcome PodAdmission::Admit(const ApiPath& path, const kube::ApiRequest& request,
                                          FunctionRef<bool()> there) {
  if (!MakesPod(path, request) || !request.body.is_object()) return {};
  std::shared_ptr<const PodWebhook> webhook;
  std::string uid;
  {
    const std::scoped_lock lock(mutex_);
    webhook = webhook_;
    uid = fmt::format("review-{}", ++asked_);
  }
  if (webhook == nullptr || !webhook->matches(request.body)) return {};
  if (!path.name.empty() && there()) return {};
  Outcome outcome;
  kube::ApiRequest changed = request;
  outcome.refusal = AskWebhook(*webhook, path.ns, uid, changed, outcome.warnings);
  if (!outcome.refusal) outcome.changed = std::move(changed);
  return outcome;
}

}  // namespace nos::sim
