#include "telemetryserver/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/millis.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "telemetryserver/ingest.h"

namespace nos::telemetryserver {
namespace {

// Texts of a JSON object, each shortened. Nullopt: too many, or one is no text.
std::optional<std::map<std::string, std::string>> TextsIn(const Json& alert, const char* key,
                                                          size_t longest) {
  std::map<std::string, std::string> texts;
  const Json* found = Find(alert, key);
  if (found == nullptr) return texts;
  if (!found->is_object() || found->get_object().size() > kMaxAlertLabels) return std::nullopt;
  for (const auto& [name, value] : found->get_object()) {
    if (!value.is_string() || name.size() > kMaxAlertLabel) return std::nullopt;
    texts.emplace(std::string(name.data(), name.size()),
                  Shortened(View(value.get_string()), longest));
  }
  return texts;
}

std::string TextOf(const std::map<std::string, std::string>& texts, const char* name) {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

// 0 for a missing or unreadable time, and for Go's zero time, by which Alertmanager means "none".
telemetry::Millis TimeIn(const Json& alert, const char* key) {
  const auto time = ParseTime(FindString(alert, key));
  return time.ok() ? std::max<telemetry::Millis>(0, ToMillis(*time)) : 0;
}

// Only addresses that a browser opens without running them.
std::string UrlIn(const Json& alert) {
  const std::string_view url = FindString(alert, "generatorURL");
  const bool safe = url.starts_with("https://") || url.starts_with("http://");
  return safe && url.size() <= kMaxAlertText ? std::string(url) : std::string();
}

struct Delivered {
  Alert alert;
  bool fires = false;
};

std::optional<Delivered> Read(const Json& json, telemetry::Millis now) {
  if (!json.is_object()) return std::nullopt;
  auto labels = TextsIn(json, "labels", kMaxAlertLabel);
  const auto annotations = TextsIn(json, "annotations", kMaxAlertText);
  const std::string_view status = FindString(json, "status");
  if (!labels || !annotations || TextOf(*labels, "alertname").empty()) return std::nullopt;
  if (status != "firing" && status != "resolved") return std::nullopt;
  Delivered delivered;
  Alert& alert = delivered.alert;
  alert.labels = *std::move(labels);
  alert.summary = TextOf(*annotations, "summary");
  alert.description = TextOf(*annotations, "description");
  if (alert.summary.empty()) alert.summary = TextOf(*annotations, "message");
  alert.url = UrlIn(json);
  alert.since = TimeIn(json, "startsAt");
  alert.ends = TimeIn(json, "endsAt");
  alert.seen = now;
  delivered.fires = status == "firing" && (alert.ends == 0 || alert.ends > now);
  return delivered;
}

// Lengths keep different labels apart, whatever characters they have.
std::string KeyOf(const Alert& alert) {
  std::string key;
  for (const auto& [name, value] : alert.labels) {
    key += fmt::format("{}:{}{}:{}", name.size(), name, value.size(), value);
  }
  return key;
}

bool IsOver(const Alert& alert, telemetry::Millis now) {
  return (alert.ends > 0 && alert.ends <= now) || now - alert.seen > kForgetAlertAfter;
}

int RankOf(const Alert& alert) {
  const std::string_view severity = alert.Label("severity");
  return severity == "critical" ? 0 : severity == "warning" ? 1 : 2;
}

net::HttpResponse Refusal(const Status& status) {
  switch (status.code()) {
    case Code::kExhausted:
      return ErrorAnswer(429, status.message());
    case Code::kUnavailable:
    case Code::kDeadline:
      return ErrorAnswer(503, status.message());
    default:
      return ErrorAnswer(401, status.message());
  }
}

}  // namespace

std::string_view Alert::Label(std::string_view name) const {
  const auto found = labels.find(std::string(name));
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

Result<AlertTable::Taken> AlertTable::Take(const std::string& cluster, std::string_view body,
                                           telemetry::Millis now) {
  NOS_ASSIGN(const Json payload, ParseJson(body));
  const Json* list = Find(payload, "alerts");
  if (FindString(payload, "version") != "4" || list == nullptr || !list->is_array()) {
    return Invalid(
        "this is no message of Alertmanager's webhook_config: version \"4\" and a list "
        "of alerts are expected");
  }
  Taken taken;
  const std::scoped_lock lock(mutex_);
  if (!alerts_.contains(cluster) && alerts_.size() >= kMaxAlertClusters) {
    return Status(Code::kExhausted, "alerts of too many clusters");
  }
  std::map<std::string, Alert>& known = alerts_[cluster];
  std::erase_if(known, [&](const auto& entry) { return IsOver(entry.second, now); });
  size_t read = 0;
  for (const Json& json : list->get_array()) {
    auto delivered = ++read <= kMaxAlertsPerRequest ? Read(json, now) : std::nullopt;
    if (!delivered) {
      ++taken.refused;
      continue;
    }
    const std::string key = KeyOf(delivered->alert);
    if (!delivered->fires) {
      known.erase(key);
      ++taken.resolved;
    } else if (known.size() < kMaxAlerts || known.contains(key)) {
      known.insert_or_assign(key, std::move(delivered->alert));
      ++taken.firing;
    } else {
      ++taken.refused;
    }
  }
  return taken;
}

std::vector<Alert> AlertTable::Firing(const std::string& cluster, telemetry::Millis now) const {
  std::vector<Alert> firing;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = alerts_.find(cluster);
    if (found == alerts_.end()) return firing;
    for (const auto& [key, alert] : found->second) {
      if (!IsOver(alert, now)) firing.push_back(alert);
    }
  }
  std::ranges::stable_sort(firing, {}, [](const Alert& alert) {
    return std::tuple(RankOf(alert), alert.since, alert.Label("alertname"));
  });
  return firing;
}

Result<std::string> AlertReceiver::ClusterOf(const net::Target& target) const {
  for (const auto& [key, value] : target.query) {
    if (key != "cluster" || value.empty()) continue;
    if (value.size() > kMaxAlertLabel) return Invalid("cluster: the name is too long");
    return value;
  }
  const std::vector<std::string> clusters = recorder_.Clusters();
  if (clusters.size() == 1) return clusters.front();
  if (clusters.empty()) {
    return Status(Code::kUnavailable,
                  "no cluster reports yet: retry later, or name one by ?cluster=");
  }
  return Invalid("there are several clusters: name one, as ?cluster=" + clusters.front());
}

net::HttpResponse AlertReceiver::Answer(const net::HttpRequest& request,
                                        const net::Target& target) {
  // A page of another site cannot send this type without asking first.
  if (!ToLower(request.Header("content-type")).starts_with("application/json")) {
    return ErrorAnswer(415, "alerts come as application/json");
  }
  const auto cluster = ClusterOf(target);
  if (!cluster.ok()) {
    return ErrorAnswer(cluster.status().code() == Code::kUnavailable ? 503 : 400,
                       cluster.status().message());
  }
  if (admit_) {
    const Status may = admit_(request, *cluster);
    if (!may.ok()) return Refusal(may);
  }
  if (request.body.size() > kMaxAlertBody) {
    return ErrorAnswer(413, fmt::format("alerts have at most {} KiB", kMaxAlertBody >> 10));
  }
  const auto turn = reading_.Begin();
  if (turn == nullptr) return ErrorAnswer(503, "too many alerts are under way: retry later");
  const auto taken = table_.Take(*cluster, request.body, recorder_.Now());
  if (!taken.ok()) {
    return ErrorAnswer(taken.status().code() == Code::kExhausted ? 413 : 400,
                       taken.status().message());
  }
  JsonText json;
  json.Begin('{').Key("firing").Number(static_cast<int64_t>(taken->firing));
  json.Key("resolved").Number(static_cast<int64_t>(taken->resolved));
  json.Key("refused").Number(static_cast<int64_t>(taken->refused)).End('}');
  net::HttpResponse response;
  response.body = std::move(json.text());
  return response;
}

}  // namespace nos::telemetryserver
