#include "telemetryreporter/sender.h"
#include "telemetryreporter/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/back_off.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/cursor.h"
#include "codec/gzip.h"
#include "telemetry/envelope_writer.h"

namespace nos::telemetry {
namespace {

constexpr size_t kMaxWords = 300;

// Error of the telemetry server, {"error": "..."}; "" if another component answered.
std::string ErrorOf(const kube::ApiResponse& response) {
  std::string error;
  (void)ReadJson(response.json(), [&](Cursor& root) {
    if (root.kind() != Cursor::Kind::kObject) return;
    root.Members([&](std::string_view key, Cursor& value) {
      if (key == "error") error = StringOf(value);
    });
  });
  return error;
}

// Requires the server's own error, so that a proxy that answers 400 to everything does not empty
// the spool. A proxy that finds an envelope too large (413) always will.
bool IsRefusedForEver(const kube::ApiResponse& response) {
  const int code = response.code;
  return code == 413 || ((code == 400 || code == 415 || code == 422) && !ErrorOf(response).empty());
}

std::string WordsOf(const kube::ApiResponse& response) {
  const std::string error = ErrorOf(response);
  return Shortened(error.empty() ? response.text : error, kMaxWords);
}

}  // namespace

Sender::Sender(SenderOptions options, Spool& spool, kube::Transport& transport, Metrics& metrics)
    : options_(std::move(options)),
      spool_(spool),
      transport_(transport),
      metrics_(metrics),
      random_(options_.seed) {}

std::optional<Duration> Sender::Step(Time now) {
  if (now < not_before_) return not_before_ - now;
  const std::optional<SpooledEnvelope> envelope = spool_.Oldest();
  if (!envelope) return std::nullopt;
  kube::ApiResponse response;
  const Status sent = Send(*envelope, now, response);
  if (!sent.ok() && IsRefusedForEver(response)) {
    metrics_.Count(kSent, {{"result", "set_aside"}});
    Log(LogLevel::kError, "setting aside envelope that the telemetry server rejects",
        {{"sequence", fmt::to_string(envelope->sequence)}, {"error", sent.message()}});
    (void)spool_.SetAside(envelope->sequence);
    return Duration::zero();
  }
  LogOutcome(sent);
  if (!sent.ok()) {
    metrics_.Count(kSent, {{"result", "failed"}});
    not_before_ = now + Pause(response.retry_after);
    return not_before_ - now;
  }
  metrics_.Count(kSent, {{"result", "acknowledged"}});
  failures_ = 0;
  if (const Status noted = spool_.Acknowledge(envelope->sequence); !noted.ok()) {
    LogOutcome(noted.Within("telemetry spool"));  // it is sent again
    not_before_ = now + Pause(Duration::zero());
  }
  return std::max(Duration::zero(), not_before_ - now);
}

Status Sender::Send(const SpooledEnvelope& envelope, Time now, kube::ApiResponse& response) {
  kube::ApiRequest request;
  request.method = "POST";
  request.path = kIngestPath;
  request.content_type = "application/json";
  request.content_encoding = "gzip";
  request.text = Gzip(WriteEnvelope(
      {options_.cluster, options_.source, spool_.boot(), envelope.sequence, now, envelope.lost},
      envelope.records));
  NOS_ASSIGN(response, transport_.Do(request));
  if (response.code == 200) return ReadAnswer(response, envelope);
  const std::string text =
      fmt::format("the telemetry server answers {}: {}", response.code, WordsOf(response));
  if (response.code != 401 && response.code != 403) return {Code::kUnavailable, text};
  return {Code::kPermission, text + "; look at telemetry.tokenFile and the server's tokens"};
}

Status Sender::ReadAnswer(const kube::ApiResponse& response, const SpooledEnvelope& envelope) {
  uint64_t sequence = 0, refused = 0;
  std::string why;
  const auto read_refusal = [&](Cursor& element) {
    ++refused;
    if (!why.empty() || element.kind() != Cursor::Kind::kObject) return;
    element.Members([&](std::string_view key, Cursor& value) {
      if (key == "why") why = Shortened(StringOf(value), kMaxWords);
    });
  };
  const Status read = ReadJson(response.json(), [&](Cursor& root) {
    if (root.kind() != Cursor::Kind::kObject) return;
    root.Members([&](std::string_view key, Cursor& value) {
      if (key == "sequence" && value.kind() == Cursor::Kind::kNumber) {
        sequence = static_cast<uint64_t>(std::max<int64_t>(0, ParseInt(value.Text()).value_or(0)));
      } else if (key == "refused" && value.kind() == Cursor::Kind::kArray) {
        value.Elements(read_refusal);
      }
    });
  });
  if (!read.ok() || sequence < envelope.sequence) {
    return {Code::kUnavailable,
            fmt::format("the telemetry server has not acknowledged envelope {}: is "
                        "telemetry.endpoint the right address?",
                        envelope.sequence)};
  }
  if (refused > 0) {
    metrics_.Count(kRefused, {}, static_cast<double>(refused));
    Log(LogLevel::kWarn, "dropping records that the telemetry server rejects",
        {{"sequence", fmt::to_string(envelope.sequence)},
         {"records", fmt::to_string(refused)},
         {"first", why}});
  }
  return Status::Ok();
}

Duration Sender::Pause(Duration at_least) {
  const BackOff pauses{options_.first_pause, options_.longest_pause};
  const Duration pause = pauses.Jittered(++failures_, random_.Uniform());
  // A pause requested by the server is the minimum, extended by jitter.
  const double wish = ToSeconds(at_least) * (1 + 0.1 * random_.Uniform());
  return std::max(pause, FromSeconds(wish));
}

void Sender::LogOutcome(const Status& outcome) {
  if (!outcome.ok() && outcome.message() != trouble_.message()) {
    Log(LogLevel::kWarn, "failed to send telemetry, buffering in spool",
        {{"error", outcome.message()}});
  }
  if (outcome.ok() && !trouble_.ok()) Log(LogLevel::kInfo, "resumed delivery of telemetry");
  trouble_ = outcome;
}

}  // namespace nos::telemetry
