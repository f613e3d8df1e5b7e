#include "exports/remote_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "exports/write_request.h"

namespace nos::exports {
namespace {

constexpr size_t kMaxSubjects = 2'000'000;
constexpr int kMaxSplits = 6;  // into 64 pieces
constexpr size_t kMaxWords = 300;

bool ComesAgain(int code) {
  constexpr int kOfTheWay[] = {401, 403, 404, 407, 408, 425, 429};
  return code < 400 || code >= 500 || std::ranges::find(kOfTheWay, code) != std::end(kOfTheWay);
}

}  // namespace

RemoteWrite::RemoteWrite(RemoteWriteOptions options, const Destination& destination,
                         kube::Transport& transport, Metrics& metrics)
    : options_(std::move(options)),
      filter_(options_.metrics),
      destination_(destination),
      transport_(transport),
      metrics_(metrics),
      names_(options_.labels),
      shards_(options_.shards) {}

void RemoteWrite::Take(std::span<const telemetryserver::Journaled> rows) {
  said_ = false;
  for (const telemetryserver::Journaled& row : rows) {
    const telemetry::Envelope& envelope = row.envelope;
    names_.Follow(envelope);
    for (const telemetry::Record& record : envelope.records) {
      const auto* readings = std::get_if<telemetry::Readings>(&record.what);
      if (readings != nullptr) Add(envelope.cluster, record.at, *readings);
    }
  }
}

void RemoteWrite::Add(const std::string& cluster, telemetry::Millis at,
                      const telemetry::Readings& readings) {
  const uint64_t hash = std::hash<std::string>()(cluster + "\n" + readings.subject);
  if (last_.size() >= kMaxSubjects) last_.clear();
  telemetry::Millis& last = last_[hash];
  if (at < last) {
    metrics_.Count(kDropped, {{"export", kName}, {"reason", "late"}},
                   static_cast<double>(readings.metrics.size()));
    return;
  }
  last = at;
  Shard& shard = shards_[hash % shards_.size()];
  const Labels& labels = names_.LabelsOf(cluster, readings.subject);
  for (const auto& [metric, value] : readings.metrics) {
    const std::string name = SeriesNames::MetricName(readings.subject, metric);
    if (!filter_.Takes(name)) continue;
    if (shard.empty() || shard.back().begins.size() >= options_.samples_per_request) {
      shard.emplace_back();
    }
    shard.back().begins.push_back(shard.back().body.size());
    AppendSeries(shard.back().body, EncodeLabels(name, labels), value, at);
  }
}

Status RemoteWrite::Send(Time, Duration& wish) {
  NOS_ASSIGN(const auto headers, destination_.Headers());
  while (true) {
    std::vector<Shard*> busy;
    std::vector<kube::ApiRequest> requests;
    for (Shard& shard : shards_) {
      if (shard.empty()) continue;
      busy.push_back(&shard);
      requests.push_back(RequestOf(shard.front()));
      requests.back().headers.insert(requests.back().headers.end(), headers.begin(), headers.end());
    }
    if (busy.empty()) return Status::Ok();
    const auto answers = transport_.DoAll(requests);
    Status trouble;
    for (size_t i = 0; i < busy.size(); ++i) {
      const Status settled = Settle(*busy[i], answers[i], wish);
      if (!settled.ok()) trouble = settled;
    }
    NOS_RETURN_IF_ERROR(trouble);
  }
}

kube::ApiRequest RemoteWrite::RequestOf(const Piece& piece) const {
  kube::ApiRequest request;
  request.method = "POST";
  request.path = destination_.path();
  request.content_type = "application/x-protobuf";
  request.content_encoding = "snappy";
  request.headers = {{"X-Prometheus-Remote-Write-Version", "0.1.0"}};
  request.text = Snappy(piece.body);
  return request;
}

Status RemoteWrite::Settle(Shard& shard, const Result<kube::ApiResponse>& answer, Duration& wish) {
  const bool taken = answer.ok() && answer->code >= 200 && answer->code < 300;
  const bool refused = answer.ok() && !taken && !ComesAgain(answer->code);
  metrics_.Count(kRequests, {{"export", kName},
                             {"result", taken     ? "ok"
                                        : refused ? "refused"
                                                  : "failed"}});
  if (taken) {
    shard.pop_front();
    return Status::Ok();
  }
  if (refused) {
    Refuse(shard, *answer);
    return Status::Ok();
  }
  if (!answer.ok()) return answer.status();
  wish = std::max(wish, answer->retry_after);
  const std::string hint = answer->code == 401 || answer->code == 403
                               ? "; check the token or password of export.remoteWrite"
                               : "";
  return {Code::kUnavailable, fmt::format("{} answers {}: {}{}", destination_.connection().server,
                                          answer->code, Shortened(answer->text, kMaxWords), hint)};
}

void RemoteWrite::Refuse(Shard& shard, const kube::ApiResponse& answer) {
  Piece piece = std::move(shard.front());
  shard.pop_front();
  const size_t series = piece.begins.size();
  if (series > 1 && piece.splits < kMaxSplits) {
    const size_t middle = piece.begins[series / 2];
    Piece second{piece.body.substr(middle), {}, piece.splits + 1};
    for (size_t i = series / 2; i < series; ++i) second.begins.push_back(piece.begins[i] - middle);
    piece.body.resize(middle);
    piece.begins.resize(series / 2);
    ++piece.splits;
    shard.push_front(std::move(second));
    shard.push_front(std::move(piece));
    return;
  }
  metrics_.Count(kDropped, {{"export", kName}, {"reason", "refused"}}, static_cast<double>(series));
  if (std::exchange(said_, true)) return;  // one message per batch is enough
  Log(LogLevel::kWarn, "dropping samples that the receiver rejects",
      {{"export", kName},
       {"samples", std::to_string(series)},
       {"code", std::to_string(answer.code)},
       {"error", Shortened(answer.text, kMaxWords)}});
}

}  // namespace nos::exports
