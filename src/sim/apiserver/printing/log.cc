#include "sim/apiserver/printing/log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nos::sim {
namespace {

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

const Json* Named(const Json* list, std::string_view name) {
  for (const Json& element : ListOf(list)) {
    if (FindString(element, "name") == name) return &element;
  }
  return nullptr;
}

std::vector<std::string> NamesIn(const Json& pod, std::string_view list) {
  std::vector<std::string> names;
  for (const Json& container : ListOf(Find(pod, "spec", list))) {
    names.emplace_back(FindString(container, "name"));
  }
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Source: k8s.io/kubernetes pkg/registry/core/pod/strategy.go, LogLocation.
Outcome<std::string> ContainerFor(const Json& pod, const std::string& asked) {
  const std::string_view name = FindString(pod, "metadata", "name");
  const auto containers = NamesIn(pod, "containers");
  const auto init = NamesIn(pod, "initContainers");
  if (!asked.empty()) {
    if (Has(containers, asked) || Has(init, asked)) return asked;
    return BadRequest(fmt::format("container {} is not valid for pod {}", asked, name));
  }
  if (containers.size() == 1 && init.empty()) return containers[0];
  if (containers.empty()) return BadRequest(fmt::format("pod {} has no container", name));
  std::string message =
      fmt::format("a container name must be specified for pod {}, choose one of: [{}]", name,
                  Join(containers, " "));
  if (!init.empty())
    message += fmt::format(" or one of the init containers: [{}]", Join(init, " "));
  return BadRequest(std::move(message));
}

std::optional<Time> TimeAt(const Json* state, std::string_view field) {
  const auto time = state == nullptr ? Result<Time>(Status(Code::kNotFound, ""))
                                     : ParseTime(FindString(*state, field));
  return time.ok() ? std::optional(*time) : std::nullopt;
}

std::vector<std::string> DeviceLines(const Json& pod, const Json& status) {
  std::vector<std::string> lines;
  for (const Json& resource : ListOf(Find(status, "allocatedResourcesStatus"))) {
    for (const Json& device : ListOf(Find(resource, "resources"))) {
      lines.push_back(fmt::format("device {}: {}", FindString(resource, "name"),
                                  FindString(device, "resourceID")));
    }
  }
  for (const Json& claim : ListOf(Find(pod, "spec", "resourceClaims"))) {
    const std::string_view name = FindString(claim, "name");
    const Json* made = Named(Find(pod, "status", "resourceClaimStatuses"), name);
    const std::string_view object =
        FindString(made == nullptr ? claim : *made, "resourceClaimName");
    lines.push_back(fmt::format("devices of ResourceClaim {}", object));
  }
  return lines;
}

void AddStart(const Json& pod, const Json& status, Time started, ContainerLog& log) {
  const auto add = [&](std::string text) { log.lines.push_back({started, std::move(text)}); };
  add("No program runs here: the sandbox simulates pods, which only hold their devices.");
  add(fmt::format("container {} of pod {}/{} on node {}", FindString(status, "name"),
                  FindString(pod, "metadata", "namespace"), FindString(pod, "metadata", "name"),
                  FindString(pod, "spec", "nodeName")));
  const std::vector<std::string> devices = DeviceLines(pod, status);
  for (const std::string& device : devices) add(device);
  if (devices.empty()) add("no device");
  add(fmt::format("started at {}", FormatTime(started)));
}

// Null or zero means absent. Refusal: 422.
Outcome<std::optional<int64_t>> CountOf(const kube::ApiRequest& request, std::string_view name) {
  const std::string text = request.Query(name);
  if (text.empty()) return std::optional<int64_t>();
  const auto number = ParseInt(text);
  if (number && *number >= 0) return std::optional(*number);
  return MakeRefusal(
      422, "Invalid",
      fmt::format("PodLogOptions \"\" is invalid: {}: Invalid value: \"{}\": must be "
                  "greater than or equal to 0",
                  name, text.substr(0, 100)));
}

bool IsTrue(const std::string& text) { return text == "true" || text == "1"; }

}  // namespace

Outcome<LogOptions> ParseLogOptions(const kube::ApiRequest& request, Time now) {
  LogOptions options;
  options.container = request.Query("container");
  options.follow = IsTrue(request.Query("follow"));
  options.previous = IsTrue(request.Query("previous"));
  options.timestamps = IsTrue(request.Query("timestamps"));
  NOS_ASSIGN(options.tail, CountOf(request, "tailLines"));
  NOS_ASSIGN(options.limit_bytes, CountOf(request, "limitBytes"));
  NOS_ASSIGN(const std::optional<int64_t> seconds, CountOf(request, "sinceSeconds"));
  constexpr int64_t kCentury = int64_t{100} * 365 * 24 * 3600;
  if (seconds) options.since = now - std::chrono::seconds(std::min(*seconds, kCentury));
  if (const std::string since = request.Query("sinceTime"); !since.empty()) {
    const auto time = ParseTime(since);
    if (!time.ok()) return BadRequest("sinceTime: not a time like 2006-01-02T15:04:05Z");
    options.since = *time;
  }
  return options;
}

Outcome<ContainerLog> LogOf(const Json& pod, const LogOptions& options) {
  NOS_ASSIGN(const std::string container, ContainerFor(pod, options.container));
  const std::string_view name = FindString(pod, "metadata", "name");
  ContainerLog log;
  if (FindString(pod, "spec", "nodeName").empty()) return log;
  if (options.previous) {
    return BadRequest(fmt::format("previous terminated container \"{}\" in pod \"{}\" not found",
                                  container, name));
  }
  const Json* status = Named(Find(pod, "status", "containerStatuses"), container);
  const Json* running = status == nullptr ? nullptr : Find(*status, "state", "running");
  const Json* ended = status == nullptr ? nullptr : Find(*status, "state", "terminated");
  const auto started = TimeAt(running != nullptr ? running : ended, "startedAt");
  if (!started) {
    const std::string_view why =
        status == nullptr ? "" : FindString(*status, "state", "waiting", "reason");
    return BadRequest(fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}",
                                  container, name, why.empty() ? "ContainerCreating" : why));
  }
  AddStart(pod, *status, *started, log);
  if (ended == nullptr) return log;
  const Time at = TimeAt(ended, "finishedAt").value_or(*started);
  const Json* code = Find(*ended, "exitCode");
  log.lines.push_back(
      {at, fmt::format("ended at {}: {}, exit code {}", FormatTime(at),
                       FindString(*ended, "reason"), code == nullptr ? "0" : WriteJson(*code))});
  log.ended = true;
  return log;
}

size_t FirstLine(const ContainerLog& log, const LogOptions& options) {
  size_t first = 0;
  while (options.since && first < log.lines.size() && log.lines[first].at < *options.since) ++first;
  if (!options.tail || std::ssize(log.lines) <= *options.tail) return first;
  return std::max(first, log.lines.size() - static_cast<size_t>(*options.tail));
}

std::string LogText(const ContainerLog& log, size_t first, const LogOptions& options) {
  std::string text;
  for (size_t i = first; i < log.lines.size(); ++i) {
    if (options.timestamps) text += FormatTime(log.lines[i].at) + " ";
    text += log.lines[i].text + "\n";
  }
  return text;
}

}  // namespace nos::sim
