#include "reconcile/testing/scene.h"

#include <algorithm>

namespace nos::reconcile::testing {

bool RunFor(Runner& runner, ManualClock& clock, Duration time) {
  constexpr int kMaxSteps = 3000;
  const Time end = clock.Now() + time;
  for (int i = 0; i < kMaxSteps; ++i) {
    if (runner.Step(clock)) continue;
    const auto due = runner.NextDue();
    if (!due || *due > end) {
      clock.AdvanceTo(std::max(end, clock.Now()));
      return true;
    }
    clock.AdvanceTo(std::max(*due, clock.Now()));
  }
  return false;
}

std::string EventsOf(const kube::FakeApi& api) {
  std::string all;
  for (const Json& event : api.All("events")) {
    all += FindString(event, "reason");
    all += ": ";
    all += FindString(event, "message");
    all += '\n';
  }
  return all;
}

int CountEvents(const kube::FakeApi& api, std::string_view reason) {
  const std::vector<Json> events = api.All("events");
  return static_cast<int>(std::ranges::count_if(
      events, [&](const Json& event) { return FindString(event, "reason") == reason; }));
}

std::string NodeAnnotation(const kube::FakeApi& api, const std::string& node,
                           const std::string& key) {
  return std::string(
      FindString(*api.Find("nodes", node), "metadata", "annotations", "nos.nebuly.com/" + key));
}

void PutBoundPod(kube::FakeApi& api, const std::string& name, const std::string& node,
                 const std::string& profile, std::string_view phase) {
  api.Put({{"kind", "Pod"},
           {"metadata", {{"namespace", "ml"}, {"name", name}}},
           {"spec",
            {{"nodeName", node},
             {"containers",
              JsonArray{{{"name", "main"},
                         {"resources", {{"limits", {{"nvidia.com/mig-" + profile, "1"}}}}}}}}}},
           {"status",
            {{"phase", phase},
             {"conditions", phase == "Running"
                                ? JsonArray{JsonObject{{"type", "Ready"}, {"status", "True"}}}
                                : JsonArray{}}}}});
}

void PutAllocatable(kube::FakeApi& api, const std::string& node,
                    const std::map<std::string, int>& counts) {
  Json object = *api.Find("nodes", node);
  for (const auto& [resource, count] : counts) {
    MakeObject(object, "status", "allocatable")[resource] = std::to_string(count);
  }
  api.Put(object);
}

}  // namespace nos::reconcile::testing
