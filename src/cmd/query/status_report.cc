#include "cmd/query/status_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/table.h"
#include "cmd/cli/money.h"
#include "cmd/query/quota_report.h"
#include "controllers/pod_facts.h"
#include "controllers/quota_rules.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

// A pod that is pending for longer than this needs attention.
constexpr Duration kLongWait = std::chrono::minutes(10);
constexpr size_t kNameWidth = 9;  // of a line's name

std::string Counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void AddPods(const LiveCluster& live, Time now, ClusterStatus& status) {
  using Key = std::tuple<std::string, std::string, std::string>;  // namespace, requests, reason
  std::map<Key, WaitingGroup> groups;
  size_t long_waits = 0;
  for (const auto& pod : live.pods) {
    const std::string requests = GpuRequestsText(*pod);
    if (requests.empty() || pod->Finished()) continue;
    if (!pod->node_name.empty()) {
      ++(pod->phase == "Running" ? status.running : status.starting);
      continue;
    }
    if (!scheduling::IsPending(*pod)) continue;
    ++status.pending;
    const controllers::Why why = controllers::WhyOf(*pod);
    const Duration age = now - pod->meta.created;
    if (age >= kLongWait) ++long_waits;
    WaitingGroup& group = groups[{pod->meta.ns, requests, why.reason}];
    ++group.pods;
    if (group.pods > 1 && age <= group.longest) continue;
    const size_t pods = group.pods;
    group = {pod->meta.ns, requests, why.reason, why.message, pod->meta.name, pods, age};
  }
  for (auto& [key, group] : groups) status.waiting.push_back(std::move(group));
  std::ranges::stable_sort(status.waiting, std::greater<>(), &WaitingGroup::longest);
  if (long_waits > 0) {
    status.attention.push_back(fmt::format("{} pending for more than {}",
                                           Counted(long_waits, "pod"), FormatAge(kLongWait)));
  }
}

void AddNodes(const LiveCluster& live, ClusterStatus& status) {
  std::set<size_t> nodes;
  std::map<size_t, size_t> unreported;  // GPUs
  for (const ListedGpu& listed : ListedGpus(live)) {
    nodes.insert(listed.node);
    status.gpus.Add(*listed.gpu);
    if (listed.managed && !listed.gpu->reported) ++unreported[listed.node];
  }
  status.nodes = nodes.size();
  for (const size_t index : nodes) {
    const cluster::NodeInfo& info = live.snapshot.node(index);
    const cluster::Node& node = *info.node;
    const cluster::Condition* ready = cluster::FindCondition(node.conditions, "Ready");
    if (ready != nullptr && ready->status != "True") {
      status.attention.push_back(
          fmt::format("node {} is not ready: {}", node.meta.name,
                      ready->message.empty() ? ready->reason : ready->message));
    }
    if (node.unschedulable) {
      status.attention.push_back(fmt::format("node {} is cordoned", node.meta.name));
    }
    if (const auto found = unreported.find(index); found != unreported.end()) {
      status.attention.push_back(fmt::format("no agent reports {} of node {}",
                                             Counted(found->second, "GPU"), node.meta.name));
    }
    if (live.unmanaged.contains(node.meta.name)) continue;
    for (const std::string& problem : info.gpus.problems) {
      status.attention.push_back(fmt::format("node {}: {}", node.meta.name, problem));
    }
  }
}

void AddQuotas(const LiveCluster& live, ClusterStatus& status) {
  quota::Ledger ledger = LedgerIn(live);
  const quota::Balance& balance = ledger.balance();
  const auto problems = controllers::ProblemsInForce(balance);
  std::set<std::string_view> pending;  // namespaces
  for (const WaitingGroup& group : status.waiting) pending.insert(group.ns);
  status.quotas = balance.size();
  for (size_t account = 0; account < balance.size(); ++account) {
    const quota::Terms& terms = balance.terms(account);
    bool borrows = false, below = false;
    for (const auto& [resource, min] : terms.min.entries()) {
      borrows = borrows || balance.BorrowedBy(account, resource) > 0;
      below = below || balance.used(account).Get(resource) < min;
    }
    const bool waits = std::ranges::any_of(
        terms.namespaces, [&](const std::string& ns) { return pending.contains(ns); });
    if (borrows) ++status.borrowing;
    if (below && waits) ++status.below_min;
    for (const std::string& problem : problems[account]) {
      status.attention.push_back(fmt::format("quota {}: {}", terms.quota->Key(), problem));
    }
  }
}

// Phrases that belong together stay on one line.
std::vector<std::string> Wrapped(const std::vector<std::string>& phrases, size_t width) {
  std::vector<std::string> lines;
  for (const std::string& phrase : phrases) {
    if (!lines.empty() && DisplayWidth(lines.back()) + 1 + DisplayWidth(phrase) <= width) {
      lines.back() += " " + phrase;
    } else {
      lines.push_back(phrase);
    }
  }
  return lines;
}

std::vector<std::string> CostLines(const HourCost& cost, size_t width) {
  const auto all = CentPartsOf(cost.total);
  if (!all) return {"unknown: no GPU of the last hour has a price"};
  std::vector<std::string> phrases = {
      fmt::format("{} {} in the last hour", all->cost, cost.currency)};
  for (const std::string& part : all->parts) {
    phrases.back() += phrases.size() == 1 ? ":" : ",";
    phrases.push_back(part);
  }
  if (AmountOf(Find(cost.total, "unpriced_gpu_hours")).value_or(0) > 0) {
    phrases.back() += ";";
    phrases.push_back(fmt::format("{} of {} GPU hours have no price",
                                  HoursText(Find(cost.total, "unpriced_gpu_hours")),
                                  HoursText(Find(cost.total, "gpu_hours"))));
  }
  return Wrapped(phrases, width);
}

Json CostJson(const HourCost& cost) {
  const auto of = [&](std::string_view key) {
    const Json* found = Find(cost.total, key);
    return found == nullptr ? Json() : *found;
  };
  return JsonObject{{"currency", cost.currency},
                    {"from", cost.from},
                    {"to", cost.to},
                    {"total", of("cost")},
                    {"gpuHours", of("gpu_hours")},
                    {"unpricedGpuHours", of("unpriced_gpu_hours")},
                    {"categories", of("categories")}};
}

}  // namespace

std::optional<HourCost> HourCostOf(const Json& answer) {
  const Json *configured = Find(answer, "configured"), *total = Find(answer, "total"),
             *from = Find(answer, "from"), *to = Find(answer, "to");
  for (const Json* each : {configured, total, from, to}) {
    if (each == nullptr) return std::nullopt;
  }
  if (*configured != Json(true) || AmountOf(Find(*total, "gpu_hours")).value_or(0) == 0) {
    return std::nullopt;
  }
  return HourCost{std::string(FindString(answer, "currency")), *from, *to, *total};
}

std::vector<RecentStory> RecentStoriesOf(const Json& answer, int64_t now) {
  std::vector<RecentStory> stories;
  const Json* list = Find(answer, "stories");
  if (list == nullptr || !list->is_array()) return stories;
  for (const Json& story : list->get_array()) {
    const Json* at = Find(story, "at");
    std::string sentence(FindString(story, "sentence"));
    if (at == nullptr || !at->is_int64() || sentence.empty()) continue;
    const int64_t age = std::clamp<int64_t>(now - at->get_int64(), 0, now);
    stories.push_back({std::chrono::milliseconds(age), std::move(sentence)});
  }
  return stories;
}

ClusterStatus StatusOf(const LiveCluster& live, Time now) {
  ClusterStatus status;
  AddPods(live, now, status);
  AddNodes(live, status);
  AddQuotas(live, status);
  const Printout plans = ReportPlans(live, now);
  status.repartitioning =
      static_cast<size_t>(std::ranges::count_if(plans.objects(), [](const PrintedObject& plan) {
        return FindString(plan.json, "state") != "applied";
      }));
  return status;
}

std::string ToText(const ClusterStatus& status, size_t width, size_t groups) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += Truncate(Printable(fmt::format("{:<{}}{}", name, kNameWidth, value)), width) + "\n";
  };
  add("GPUs", fmt::format("{} on {}: {} without pods, {} of the slots used", status.gpus.gpus,
                          Counted(status.nodes, "node"), status.gpus.gpus - status.gpus.with_pods,
                          status.gpus.UsedText()));
  add("", status.repartitioning == 0
              ? "no GPU is being repartitioned"
              : Counted(status.repartitioning, "GPU") +
                    (status.repartitioning == 1 ? " is" : " are") + " being repartitioned");
  std::string pods = fmt::format("{} running", status.running);
  if (status.starting > 0) pods += fmt::format(", {} starting", status.starting);
  pods += fmt::format(", {} pending", status.pending);
  if (!status.waiting.empty()) {
    pods += fmt::format(" (longest {})", FormatAge(status.waiting.front().longest));
  }
  add("Pods", pods);
  if (status.quotas > 0) {
    add("Quotas", fmt::format("{}: {} borrow, {} with pending pods below their min", status.quotas,
                              status.borrowing, status.below_min));
  }
  if (status.cost) {
    const auto lines = CostLines(*status.cost, width - std::min(width, kNameWidth));
    for (const std::string& line : lines) add(&line == &lines.front() ? "Cost" : "", line);
  }
  if (!status.waiting.empty()) {
    TextTable table({"PODS", "NAMESPACE", "REQUEST", "LONGEST", "OLDEST", "WHY"});
    for (size_t i = 0; i < std::min(groups, status.waiting.size()); ++i) {
      const WaitingGroup& group = status.waiting[i];
      table.AddRow({fmt::to_string(group.pods), group.ns, group.requests, FormatAge(group.longest),
                    group.oldest, group.message.empty() ? "-" : group.message});
    }
    text += "\nPENDING, longest first\n" + table.ToString(width);
    if (status.waiting.size() > groups) {
      text += fmt::format("and {} more; nos get pods lists all\n",
                          Counted(status.waiting.size() - groups, "group"));
    }
  }
  if (status.stories && !status.stories->empty()) {
    TextTable table({"AGO", "DECISION"});
    for (const RecentStory& story : *status.stories) {
      table.AddRow({FormatAge(story.age), story.sentence});
    }
    text += "\nLAST HOUR, newest first; nos get stories lists all\n" + table.ToString(width);
  }
  text += "\nNEEDS ATTENTION\n";
  if (status.attention.empty()) text += "nothing\n";
  for (const std::string& sentence : status.attention) {
    text += Truncate(Printable(sentence), width) + "\n";
  }
  return text;
}

Json ToJson(const ClusterStatus& status) {
  JsonArray waiting;
  for (const WaitingGroup& group : status.waiting) {
    waiting.push_back(JsonObject{{"namespace", group.ns},
                                 {"pods", group.pods},
                                 {"requests", group.requests},
                                 {"longestSeconds", ToSeconds(group.longest)},
                                 {"oldest", group.oldest},
                                 {"reason", group.reason},
                                 {"why", group.message}});
  }
  const double gpus = static_cast<double>(std::max<size_t>(1, status.gpus.gpus));
  JsonObject json = {
      {"nodes", status.nodes},
      {"gpus", JsonObject{{"total", status.gpus.gpus},
                          {"withoutPods", status.gpus.gpus - status.gpus.with_pods},
                          {"used", status.gpus.known ? Json(status.gpus.used / gpus) : Json()},
                          {"repartitioning", status.repartitioning}}},
      {"pods", JsonObject{{"running", status.running},
                          {"starting", status.starting},
                          {"pending", status.pending}}},
      {"quotas", JsonObject{{"total", status.quotas},
                            {"borrowing", status.borrowing},
                            {"belowMinWithPendingPods", status.below_min}}},
      {"waiting", std::move(waiting)},
      {"attention", JsonArray(status.attention.begin(), status.attention.end())}};
  if (status.cost) json["cost"] = CostJson(*status.cost);
  if (status.stories) {
    JsonArray stories;
    for (const RecentStory& story : *status.stories) {
      stories.push_back(
          JsonObject{{"ageSeconds", ToSeconds(story.age)}, {"sentence", story.sentence}});
    }
    json["stories"] = std::move(stories);
  }
  return json;
}

}  // namespace nos::cmd
