#include "telemetryserver/ingest/node_subjects.h"

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {

bool NodeSubjects::Admit(const std::string& node, const std::string& subject,
                         telemetry::Millis now) {
  // Also if the clock was set back.
  const auto is_over = [now](telemetry::Millis began) {
    return now >= began + kDay || now < began;
  };
  if (is_over(cleaned_)) {
    std::erase_if(days_, [&](const auto& day) { return is_over(day.second.began); });
    cleaned_ = now;
  }
  Day& day = days_[node];
  if (is_over(day.began)) day = {now, {}};
  if (day.subjects.contains(subject)) return true;
  if (day.subjects.size() >= kMaxSubjects) return false;
  day.subjects.insert(subject);
  return true;
}

}  // namespace nos::telemetryserver
