#include "telemetryserver/state/objects.h"

#include <algorithm>

namespace nos::telemetryserver {

std::vector<std::string> RunsKeys(const Pod& pod) {
  std::vector<std::string> keys;
  if (!pod.job.empty()) {
    keys.push_back(pod.ns + "/" + pod.job);
  } else if (const size_t dash = pod.name.rfind('-'); dash != std::string::npos) {
    keys.push_back(pod.ns + "//" + pod.name.substr(0, dash));
  }
  keys.push_back(pod.ns);
  return keys;
}

bool Pod::WantsGpu() const {
  return std::ranges::any_of(requests, [](const auto& request) {
    return request.second > 0 &&
           request.first.find('/') != std::string::npos;  // extended resources
  });
}

bool Pod::IsGated() const { return FindString(body, "reason") == "SchedulingGated"; }

double Pod::Request(std::string_view resource) const {
  for (const auto& [asked, amount] : requests) {
    if (asked == resource) return amount;
  }
  return 0;
}

}  // namespace nos::telemetryserver
