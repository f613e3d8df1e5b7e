#include "telemetryserver/ingest.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/text.h"
#include "codec/gzip.h"
#include "codec/json_text.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {
namespace {

std::string AcknowledgementOf(int64_t sequence, const std::vector<telemetry::Refused>& refused) {
  JsonText json;
  json.Begin('{').Key("sequence").Number(sequence).Key("refused").Begin('[');
  for (const telemetry::Refused& entry : refused) {
    json.Begin('{').Key("record").Number(static_cast<int64_t>(entry.record));
    json.Key("why").Text(entry.why).End('}');
  }
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace

net::HttpResponse ErrorAnswer(int code, std::string_view message) {
  JsonText json;
  json.Begin('{').Key("error").Text(message).End('}');
  net::HttpResponse response;
  response.code = code;
  response.body = std::move(json.text()) + "\n";
  if (code == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (code == 503 || code == 429) response.headers.emplace_back("Retry-After", "5");
  return response;
}

net::HttpResponse Ingest::Fail(int code, const char* result, const Status& status) const {
  metrics_.Count(kEnvelopes, {{"result", result}});
  return ErrorAnswer(code, status.message());
}

net::HttpResponse Ingest::Turned(int code, const char* result, const Status& status) const {
  if (status.code() == Code::kPermission) return Fail(code, result, status);
  return Fail(status.code() == Code::kExhausted ? 429 : 503, "busy", status);
}

net::HttpResponse Ingest::Answer(const net::HttpRequest& request) {
  const auto turn = under_way_.Begin();
  if (turn == nullptr) {
    return Fail(503, "busy",
                {Code::kExhausted, "too many envelopes are under way: retry in some seconds"});
  }
  if (admit_) {
    const Status known = admit_(request, nullptr);
    if (!known.ok()) return Turned(401, "unauthorized", known);
  }
  auto delivery = Read(request);
  if (!delivery.ok()) {
    const Code code = delivery.status().code();
    return Fail(code == Code::kExhausted       ? 413
                : code == Code::kUnimplemented ? 415
                                               : 400,
                "unreadable", delivery.status());
  }
  telemetry::Envelope& envelope = delivery->envelope;
  if (admit_) {
    const Status allowed = admit_(request, &envelope);
    if (!allowed.ok()) return Turned(403, "forbidden", allowed);
  }
  if (auto too_much = Hold(envelope, delivery->bytes)) return *std::move(too_much);
  std::vector<telemetry::Refused> refused = envelope.refused;
  const size_t valid = envelope.records.size(), invalid = refused.size();
  const Recorder::Receipt receipt = recorder_.Take(std::move(envelope), std::move(delivery->body));
  if (!receipt.status.ok()) {
    const bool never = receipt.status.code() == Code::kInvalid;
    return Fail(never ? 400 : 503, never ? "unreadable" : "unwritten", receipt.status);
  }
  refused.insert(refused.end(), receipt.refused.begin(), receipt.refused.end());
  metrics_.Count(kEnvelopes, {{"result", "ok"}});
  metrics_.Count(kRecords, {{"result", "ok"}},
                 static_cast<double>(valid - receipt.refused_records));
  metrics_.Count(kRecords, {{"result", "refused"}},
                 static_cast<double>(invalid + receipt.refused_records));
  net::HttpResponse response;
  response.body = AcknowledgementOf(receipt.sequence, refused);
  return response;
}

std::optional<net::HttpResponse> Ingest::Hold(const telemetry::Envelope& envelope, size_t bytes) {
  if (telemetry::NodeOfSource(envelope.source).empty()) return {};
  const Time now{std::chrono::milliseconds(recorder_.Now())};
  const Duration wait =
      of_nodes_.Take(envelope.cluster + "/" + envelope.source, now, static_cast<double>(bytes));
  if (wait == Duration(0)) return {};
  const auto seconds = std::clamp<int64_t>(static_cast<int64_t>(ToSeconds(wait)) + 1, 5, 60);
  net::HttpResponse response =
      Fail(429, "busy",
           {Code::kExhausted, fmt::format("{} sends more than {:.0f} KiB a second", envelope.source,
                                          kNodeBytesPerSecond / 1024)});
  response.headers = {{"Retry-After", std::to_string(seconds)}};
  return response;
}

Result<Ingest::Delivery> Ingest::Read(const net::HttpRequest& request) {
  const auto turn = reading_.Begin();  // never null: all requests under way may wait
  const std::string encoding = ToLower(request.Header("content-encoding"));
  Delivery delivery;
  if (encoding == "gzip") {
    NOS_ASSIGN(const std::string text, Gunzip(request.body, telemetry::kMaxEnvelopeBytes));
    NOS_ASSIGN(delivery.envelope, telemetry::ReadEnvelope(text, recorder_.Now()));
    delivery.bytes = text.size();
    delivery.body = request.body;
    return delivery;
  }
  if (!encoding.empty() && encoding != "identity") {
    return Status(Code::kUnimplemented,
                  fmt::format("Content-Encoding {} is not known: send gzip", encoding));
  }
  NOS_ASSIGN(delivery.envelope, telemetry::ReadEnvelope(request.body, recorder_.Now()));
  delivery.bytes = request.body.size();
  delivery.body = Gzip(request.body, 1);
  return delivery;
}

}  // namespace nos::telemetryserver
