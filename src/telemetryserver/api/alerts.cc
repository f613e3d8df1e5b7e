// The route of firing alerts for readers.
#include "telemetryserver/alerts.h"

#include "codec/json_text.h"
#include "telemetryserver/api.h"

namespace nos::telemetryserver {

// An alert with a namespace is for those who see this namespace, any other for those who see all.
Api::Reply Api::FiringAlerts(const ApiCall& call) {
  const telemetry::Millis now = parts_.recorder.Now();
  const Scope scope = call.scope();
  JsonText json;
  json.Begin('{').Key("at").Number(now).Key("configured").Bool(parts_.alerts != nullptr);
  json.Key("alerts").Begin('[');
  std::vector<Alert> firing;
  if (parts_.alerts != nullptr) firing = parts_.alerts->table().Firing(call.cluster, now);
  for (const Alert& alert : firing) {
    const std::string ns(alert.Label("namespace"));
    if (ns.empty() ? !scope.all() : !scope.Has(ns)) continue;
    json.Begin('{').Key("name").Text(alert.Label("alertname")).Key("namespace").Text(ns);
    json.Key("severity").Text(alert.Label("severity")).Key("summary").Text(alert.summary);
    json.Key("description").Text(alert.description).Key("url").Text(alert.url);
    json.Key("since").Number(alert.since).Key("labels").Begin('{');
    for (const auto& [name, value] : alert.labels) {
      json.Raw(WriteJson(Json(name)) + ":" + WriteJson(Json(value)));
    }
    json.End('}').End('}');
  }
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
