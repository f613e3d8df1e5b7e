// Routes of readers' actions: what-if and submit of pods, and their refusals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/millis.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "telemetryserver/api.h"

namespace nos::telemetryserver {
namespace {

// With JSON escapes, a text may take twice its size.
constexpr size_t kMaxPod = size_t{256} << 10, kMaxBody = 2 * kMaxPod + 4096;

std::string_view OutcomeOf(const Status& status) {
  if (status.ok()) return "done";
  return status.code() == Code::kPermission ? "refused" : "failed";
}

Result<std::string> TextMember(const Json& body, std::string_view key) {
  const Json* value = Find(body, key);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return Invalid(fmt::format("{}: it must be text", key));
  return std::string(View(value->get_string()));
}

}  // namespace

int HttpCodeOf(const Status& status) {
  switch (status.code()) {
    case Code::kInvalid:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kPermission:
      return 403;
    case Code::kAlreadyExists:
    case Code::kConflict:
      return 409;
    case Code::kUnimplemented:
      return 501;
    case Code::kExhausted:
    case Code::kUnavailable:
      return 503;
    case Code::kDeadline:
      return 504;
    default:
      return 500;
  }
}

net::HttpResponse TooManyAnswer(std::string_view message, Duration wait) {
  net::HttpResponse response = ErrorAnswer(429, message);
  const auto seconds = static_cast<int64_t>(std::ceil(ToSeconds(wait)));
  for (auto& [name, value] : response.headers) {
    if (name == "Retry-After") value = std::to_string(std::max<int64_t>(1, seconds));
  }
  return response;
}

Time Api::Now() const { return Time(std::chrono::milliseconds(parts_.recorder.Now())); }

std::string Api::AddressOf(const net::HttpRequest& request) const {
  return parts_.address ? parts_.address(request) : request.peer;
}

std::optional<net::HttpResponse> Api::Hold(net::RateLimit Limits::* limit, const std::string& who,
                                           std::string_view what) {
  if (parts_.limits == nullptr) return std::nullopt;
  const Duration wait = (parts_.limits->*limit).Take(who, Now());
  if (wait <= Duration(0)) return std::nullopt;
  return TooManyAnswer(fmt::format("too many {}: retry later", what), wait);
}

void Api::WriteRefusal(const net::HttpRequest& request, std::string_view action,
                       const Status& why) {
  if (parts_.audit == nullptr) return;
  const Audit::Entry entry{std::string(action), "",           AddressOf(request), "", "",
                           "refused",           why.message()};
  parts_.audit->WriteBounded(entry, Now());
}

// Answer to a request whose credentials are missing or unknown.
net::HttpResponse Api::Unknown(const net::HttpRequest& request, const Status& why) {
  if (why.code() == Code::kExhausted) {
    return TooManyAnswer(why.message(), std::chrono::seconds(30));
  }
  if (why.code() != Code::kPermission) return ErrorAnswer(503, why.message());
  if (!request.Header("authorization").empty()) WriteRefusal(request, "sign-in", why);
  net::HttpResponse response = ErrorAnswer(401, why.message());
  if (parts_.sign_in.empty()) return response;
  JsonText json;
  json.Begin('{').Key("error").Text(why.message()).Key("sign_in").Text(parts_.sign_in).End('}');
  response.body = std::move(json.text()) + "\n";
  return response;
}

net::HttpResponse Api::Act(const net::HttpRequest& request, std::string_view name,
                           const Reader& reader) {
  ActionCall call{reader, request, {}, {}, {}};
  std::optional<net::HttpResponse> refusal = Hold(&Limits::actions, reader.user, "actions");
  std::unique_ptr<Limits::Turn> turn;
  if (!refusal && parts_.limits != nullptr) {
    turn = parts_.limits->Begin(reader.user);
    if (turn == nullptr) {
      refusal = TooManyAnswer("another action of this user is under way: retry in some seconds",
                              std::chrono::seconds(1));
    }
  }
  const Reply reply = refusal ? Reply(Status(Code::kExhausted, "too many")) : Do(call, name);
  if (parts_.audit != nullptr) {
    const Audit::Entry entry{std::string(name),
                             reader.user,
                             AddressOf(request),
                             call.cluster,
                             call.subject,
                             std::string(OutcomeOf(reply.status())),
                             reply.status().message()};
    refusal ? parts_.audit->WriteBounded(entry, Now()) : parts_.audit->Write(entry, Now());
  }
  if (refusal) return std::move(*refusal);
  if (!reply.ok()) {
    const bool large = reply.status().code() == Code::kExhausted;
    return ErrorAnswer(large ? 413 : HttpCodeOf(reply.status()), reply.status().message());
  }
  net::HttpResponse response;
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = *reply;
  return response;
}

// kExhausted: the request is too large.
Api::Reply Api::Do(ActionCall& call, std::string_view name) {
  const Status large(Code::kExhausted,
                     fmt::format("a pod has at most {} KiB of text", kMaxPod >> 10));
  if (call.request.body.size() > kMaxBody) return large;
  NOS_ASSIGN(const Json body, ParseJson(call.request.body));
  NOS_ASSIGN(call.pod, TextMember(body, "pod"));
  if (call.pod.empty()) return Invalid("pod: the text of a pod is missing, YAML or JSON");
  if (call.pod.size() > kMaxPod) return large;
  NOS_ASSIGN(const std::string named, TextMember(body, "cluster"));
  NOS_ASSIGN(call.cluster, ClusterNamed(named));
  call.only_cluster = parts_.recorder.Clusters().size() == 1;
  if (parts_.actions == nullptr) {
    return Status(Code::kUnimplemented,
                  "this server has no access to a cluster: see actions in its configuration");
  }
  return name == "submit" ? parts_.actions->Submit(call) : parts_.actions->WhatIf(call);
}

}  // namespace nos::telemetryserver
