// Random events for one or two schedulers that enforce elastic quotas. Invariants at any time: no
// quota exceeds its max, no node its capacity, and no pod that min covers is evicted. When events
// stop, both schedulers settle, and every pod that min covers runs if it can.
#include <random>
#include <set>

#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

// Options of a run.
struct Events {
  const char* name = "";
  bool sizes = false;       // pods of 1 to 3 CPUs
  bool priorities = false;  // pods of a team preempt each other
  bool ties = false;        // pods that fit one node only
  bool strangers = false;   // pods of a namespace without quota
  bool second = false;      // half of the pods belong to a second scheduler
  bool changes = false;     // min of quotas changes
  bool gangs = false;
  bool returns = false;  // evicted pods are created again, as by controllers
};

class RandomQuotasTest : public ClaimsFixture,
                         public ::testing::WithParamInterface<std::tuple<Events, unsigned>> {
 protected:
  void Play(const Events& events, unsigned seed) {
    events_ = events;
    random_.seed(seed);
    api_.intercept = [this](const kube::ApiRequest& request) { return Answer(request); };
    Build();
    if (events.second) StartSecond();
    Settle();
    writes_fail_ = Draw(3) == 0;
    for (int left = 30 + Draw(60); left > 0; --left) {
      Happen();
      if (Draw(3) != 0) {
        Settle();
      } else {
        RunSteps(Draw(4));
      }
    }
    writes_fail_ = false;
    ComeToRest();
    CheckGuarantees();
    CheckGangs();
    CheckRest();
    EXPECT_TRUE(problems_.empty()) << "seed " << seed << ": " << *problems_.begin() << " and "
                                   << problems_.size() - 1 << " more";
  }

 private:
  // Limit of created pods: more mean that evictions never end.
  static constexpr int kMaxPods = 400;
  struct Asks {
    std::string ns;
    int cpu = 0, priority = 0;
    std::string node;  // the only node; empty: any
    std::string gang;  // "ns/name"; empty: none
  };
  struct Team {
    int min = 0;
    std::optional<int> max;
  };

  int Draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string DrawTeam() { return std::string(1, static_cast<char>('a' + Draw(4))); }
  std::string DrawNode() { return "n" + std::to_string(Draw(static_cast<int>(nodes_.size()))); }

  void Build() {
    int left = 0;
    for (int i = 2 + Draw(3); i > 0; --i) {
      const std::string name = "n" + std::to_string(nodes_.size());
      nodes_[name] = 2 + Draw(4);
      left += nodes_[name];
      Node(name, std::to_string(nodes_[name]));
    }
    for (const char* ns : {"a", "b", "c", "d"}) {
      Team& team = teams_[ns];
      team.min = Draw(left / 2 + 1);
      left -= team.min;
      if (Draw(3) == 0) team.max = team.min + Draw(4);
      PutTeam(ns);
    }
  }
  void PutTeam(const std::string& ns) {
    const Team& team = teams_.at(ns);
    Quota(ns, {{"cpu", std::to_string(team.min)}},
          team.max ? Amounts{{"cpu", std::to_string(*team.max)}} : Amounts{});
  }
  std::string AddPod(const std::string& ns, int cpu, int priority, const std::string& node,
                     const std::string& gang, const std::string& scheduler) {
    const std::string name = "p" + std::to_string(made_++);
    JsonObject more{{"schedulerName", scheduler}};
    if (!node.empty()) more["nodeSelector"] = {{"name", node}};
    JsonObject labels;
    if (!gang.empty()) labels["scheduling.x-k8s.io/pod-group"] = gang;
    PodWith(ns, name, {{"cpu", std::to_string(cpu)}}, priority, labels, more);
    std::string key = ns + "/" + name;
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata")["creationTimestamp"] =
        FormatTime(Time(seconds(1'700'000'000 + made_)));
    api_.Put(pod);
    asks_[key] = {ns, cpu, priority, node, gang.empty() ? "" : ns + "/" + gang};
    return key;
  }

  void Happen() {
    const int what = Draw(12);
    if (what < 6) {
      const bool stranger = events_.strangers && Draw(5) == 0;
      AddPod(stranger ? "other" : DrawTeam(), events_.sizes ? 1 + Draw(3) : 1, DrawPriority(),
             events_.ties && Draw(3) == 0 ? DrawNode() : "", "",
             events_.second && Draw(2) == 0 ? "second" : "default-scheduler");
    } else if (what == 6) {
      EndSome(50);
    } else if (what == 7) {
      ChangeSomePod([this](const std::string& key) { api_.Remove("pods", key); });
    } else if (what == 8) {
      clock_.Advance(seconds(Draw(60)));
    } else if (what == 9) {
      ChangeSomePod([this](const std::string& key) {
        Json pod = *api_.Find("pods", key);
        MakeObject(pod, "metadata", "annotations")["x"] = std::to_string(random_());
        api_.Put(pod);
      });
    } else if (what == 10) {
      if (Draw(4) == 0) Restart();
    } else if (events_.gangs && Draw(2) == 0) {
      AddGang();
    } else if (events_.changes) {
      ChangeMin();
    }
  }
  int DrawPriority() { return events_.priorities ? 10 * Draw(3) : 0; }
  void AddGang() {
    const std::string ns = DrawTeam(), name = "g" + std::to_string(made_);
    const int size = 2 + Draw(3), priority = DrawPriority();
    Group(ns, name, size);
    gangs_[ns + "/" + name].least = size;
    for (int i = 0; i < size; ++i) {
      gangs_[ns + "/" + name].members.push_back(
          AddPod(ns, events_.sizes ? 1 + Draw(2) : 1, priority, "", name, "default-scheduler"));
      if (Draw(4) == 0) Settle();
    }
  }
  // The sum of all min stays within the cluster's capacity.
  void ChangeMin() {
    Settle();
    const std::string ns = DrawTeam();
    int left = 0;
    for (const auto& [node, cpu] : nodes_) left += cpu;
    for (const auto& [other, team] : teams_) left -= other == ns ? 0 : team.min;
    Team& team = teams_.at(ns);
    team.min = Draw(left + 1);
    if (team.max) team.max = std::max(*team.max, team.min);
    PutTeam(ns);
    Settle();
  }
  template <typename Change>
  void ChangeSomePod(Change change) {
    if (asks_.empty()) return;
    auto it = asks_.begin();
    std::advance(it, Draw(static_cast<int>(asks_.size())));
    if (api_.Find("pods", it->first) != nullptr) change(it->first);
  }
  void EndSome(int percent) {
    std::vector<std::string> ended;
    for (const auto& [key, asks] : asks_) {
      if (At(key) == "ending" && Draw(100) < percent) ended.push_back(key);
    }
    for (const std::string& key : ended) {
      const Asks asks = asks_.at(key);
      const std::string scheduler(FindString(*api_.Find("pods", key), "spec", "schedulerName"));
      api_.Remove("pods", key);
      if (!events_.returns || static_cast<int>(asks_.size()) > kMaxPods) continue;
      (void)AddPod(asks.ns, asks.cpu, asks.priority, asks.node, "", scheduler);
    }
  }

  void Settle() {
    for (int i = 0; i < 2000; ++i) {
      bool any = runner_->Step(clock_);
      if (second_runner_) any |= second_runner_->Step(clock_);
      CheckAmounts();
      if (!any) return;
    }
    problems_.insert("does not come to rest within 2000 steps");
  }
  void ComeToRest() {
    for (int i = 0; i < 200; ++i) {
      Settle();
      clock_.Advance(seconds(10));
      EndSome(20);
    }
    for (int i = 0; i < 20; ++i) {
      Settle();
      clock_.Advance(seconds(60));
      EndSome(100);
    }
  }
  // Evicted pods terminate until EndSome; some writes fail.
  std::optional<Result<kube::ApiResponse>> Answer(const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    const auto say = [&](int status) {
      answer = Result<kube::ApiResponse>(kube::ApiResponse{status, JsonObject{}, {}, {}});
    };
    if (writes_fail_ && request.method == "PATCH" && request.path.ends_with("/status") &&
        Draw(10) == 0) {
      say(500);
    }
    if (request.method != "DELETE") return answer;
    const size_t begin = request.path.find("namespaces/") + 11;
    const std::string key = request.path.substr(begin, request.path.find('/', begin) - begin) +
                            request.path.substr(request.path.rfind('/'));
    if (api_.Find("pods", key) == nullptr) return answer;
    CheckGuarantee(key);
    ++evictions_;
    EvictedByAnother(key);
    say(200);
    return answer;
  }
  // Checks that no pod within min was evicted. Pods of the same quota may preempt each other.
  void CheckGuarantee(const std::string& key) {
    const auto team = teams_.find(asks_.at(key).ns);
    if (team == teams_.end() || events_.priorities || events_.gangs) return;
    const int used = UsedBy(team->first, false);
    if (used > team->second.min) return;
    problems_.insert(key + " evicted: " + std::to_string(used) + " used, min is " +
                     std::to_string(team->second.min));
  }

  bool IsBound(const std::string& key) {
    const Json* pod = api_.Find("pods", key);
    return pod != nullptr && !FindString(*pod, "spec", "nodeName").empty();
  }
  int UsedBy(const std::string& ns, bool with_ending = true) {
    int used = 0;
    for (const auto& [key, asks] : asks_) {
      if (asks.ns != ns || !IsBound(key)) continue;
      if (with_ending || At(key) != "ending") used += asks.cpu;
    }
    return used;
  }
  // Usage by pods of the same team with at least the same priority.
  int UsedBefore(const std::string& waiting) {
    const Asks& asked = asks_.at(waiting);
    int used = 0;
    for (const auto& [key, asks] : asks_) {
      const bool lesser = asks.gang.empty() && asks.priority < asked.priority;
      if (asks.ns == asked.ns && !lesser && IsBound(key)) used += asks.cpu;
    }
    return used;
  }
  void CheckAmounts() {
    for (const auto& [ns, team] : teams_) {
      if (team.max && UsedBy(ns) > *team.max) problems_.insert("max of " + ns + " is exceeded");
    }
    std::map<std::string, int> used;
    for (const auto& [key, asks] : asks_) {
      if (!IsBound(key)) continue;
      const std::string node(FindString(*api_.Find("pods", key), "spec", "nodeName"));
      used[node] += asks.cpu;
      if (used[node] > nodes_.at(node)) problems_.insert("node " + node + " is too full");
    }
  }
  void CheckGuarantees() {
    for (const auto& [key, asks] : asks_) {
      const auto team = teams_.find(asks.ns);
      if (team == teams_.end() || At(key) != "" || !asks.gang.empty()) continue;
      if (UsedBefore(key) + asks.cpu > team->second.min) continue;
      for (const auto& [node, cpu] : nodes_) {
        if (!asks.node.empty() && asks.node != node) continue;
        if (FreeOrBorrowed(node, asks.ns) < asks.cpu) continue;
        problems_.insert(key + " waits, could run on " + node + ": " + WhyOf(key) +
                         ", nominated: '" + NomineeOf(key) + "'");
        break;
      }
    }
  }
  // CPUs of the node that only `ns` is entitled to: free ones, those of pods without quota, and
  // those of the youngest pods of other teams beyond their min.
  int FreeOrBorrowed(const std::string& node, const std::string& ns) {
    int cpus = nodes_.at(node);
    for (const auto& [key, asks] : asks_) {
      if (At(key) == node && teams_.contains(asks.ns)) cpus -= asks.cpu;
    }
    for (const auto& [other, team] : teams_) {
      if (other == ns) continue;
      std::vector<std::string> beyond;
      int sum = 0;
      for (int i = 0; i < made_; ++i) {  // by age
        const std::string key = other + "/p" + std::to_string(i);
        if (!IsBound(key)) continue;
        sum += asks_.at(key).cpu;
        if (sum > team.min) beyond.push_back(key);
      }
      int over = sum - team.min;
      for (auto key = beyond.rbegin(); key != beyond.rend() && over > 0; ++key) {
        if (At(*key) != node) continue;
        cpus += asks_.at(*key).cpu;
        over -= asks_.at(*key).cpu;
      }
    }
    return cpus;
  }
  void CheckGangs() {
    int room = 0;
    for (const auto& [node, cpu] : nodes_) room += cpu;
    for (const auto& [ns, team] : teams_) room -= std::min(team.min, UsedBy(ns));
    for (const auto& [name, gang] : gangs_) {
      int there = 0, placed = 0, cpu = 0;
      bool alike = true;
      for (const std::string& key : gang.members) {
        there += At(key) != "gone";
        placed += IsBound(key);
        if (At(key) == "") cpu += asks_.at(key).cpu;
        alike &= asks_.at(key).cpu == 1;
      }
      if (there < gang.least || placed >= gang.least) continue;
      if (placed > 0) problems_.insert("half of gang " + name + " is placed");
      const std::string& ns = asks_.at(gang.members.front()).ns;
      if (alike && UsedBy(ns) + cpu <= teams_.at(ns).min && cpu <= room) {
        problems_.insert("gang " + name + " waits: " + WhyOf(gang.members.front()));
      }
    }
  }
  // Runs an hour without events.
  void CheckRest() {
    const size_t writes = api_.writes.size();
    const int evictions = evictions_;
    for (int i = 0; i < 360; ++i) {
      Settle();
      clock_.Advance(seconds(10));
    }
    if (evictions_ != evictions) problems_.insert("evictions though nothing happens");
    if (static_cast<int>(asks_.size()) > kMaxPods) problems_.insert("evictions without end");
    size_t waiting = 0;
    for (const auto& [key, asks] : asks_) waiting += At(key) == "" ? 1 : 0;
    if (const size_t more = api_.writes.size() - writes; more > 30 * waiting + 10) {
      problems_.insert(std::to_string(more) + " writes in an hour for " + std::to_string(waiting) +
                       " that wait");
    }
  }

  struct Gang {
    int least = 0;
    std::vector<std::string> members;
  };
  Events events_;
  std::mt19937 random_;
  std::map<std::string, int> nodes_;  // CPUs
  std::map<std::string, Team> teams_;
  std::map<std::string, Asks> asks_;  // all pods ever created
  std::map<std::string, Gang> gangs_;
  std::set<std::string> problems_;
  int made_ = 0, evictions_ = 0;
  bool writes_fail_ = false;
};

TEST_P(RandomQuotasTest, InvariantsHold) {
  const auto& [events, seed] = GetParam();
  Play(events, seed);
}

const Events kEvents[] = {
    {.name = "Units", .strangers = true},
    {.name = "Ties", .ties = true, .strangers = true},
    {.name = "Priorities", .priorities = true, .ties = true, .strangers = true},
    {.name = "Sizes", .sizes = true, .ties = true, .strangers = true},
    {.name = "Second", .second = true},
    {.name = "SecondAndAll",
     .sizes = true,
     .priorities = true,
     .ties = true,
     .strangers = true,
     .second = true},
    {.name = "Changes", .ties = true, .strangers = true, .changes = true},
    {.name = "ChangesAndSizes",
     .sizes = true,
     .priorities = true,
     .ties = true,
     .strangers = true,
     .changes = true},
    {.name = "Returns", .ties = true, .strangers = true, .returns = true},
    {.name = "ReturnsAndPriorities",
     .sizes = true,
     .priorities = true,
     .ties = true,
     .strangers = true,
     .returns = true},
    {.name = "Gangs", .strangers = true, .gangs = true},
    {.name = "GangsAndChanges",
     .priorities = true,
     .ties = true,
     .strangers = true,
     .changes = true,
     .gangs = true},
};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomQuotasTest,
                         ::testing::Combine(::testing::ValuesIn(kEvents), ::testing::Range(1u, 9u)),
                         [](const auto& drawn) {
                           return std::string(std::get<0>(drawn.param).name) +
                                  std::to_string(std::get<1>(drawn.param));
                         });

}  // namespace
}  // namespace nos::controllers
