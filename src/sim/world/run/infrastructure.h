// The infrastructure behind node pools in a virtual cluster: for each pool a NodePool, the
// MachineSet that it scales, and a simulated controller that creates and removes nodes until there
// are as many as requested.
//
//   Infrastructure infrastructure(env, checker, {.join = ..., .leave = ...});
//   NOS_RETURN_IF_ERROR(infrastructure.Add({.name = "a100", .node = {.gpus = {{"A100-40GB"}}}}));
//   infrastructure.SetFault("a100", PoolFault::kLate);
//
// A node joins PoolSpec::start after the request. A scale-down removes the node whose Machine, or
// Node, has the annotation cluster.x-k8s.io/delete-machine; otherwise one that has not joined yet,
// or the newest. Faults are drawn (FaultRates), or set for a pool. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world/checks/move_checker.h"
#include "sim/world/events/actor.h"
#include "sim/world/model/pool_specs.h"
#include "sim/world/node/environment.h"

namespace nos::sim {

// The behaviour of a pool from now on.
enum class PoolFault {
  kNone,
  kLate,    // nodes take three times as long to join
  kNever,   // nodes do not join while this fault is set
  kPartly,  // every second node does not join
  kWrong,   // nodes join with one GPU less than specified
  kOther,   // a scale-down removes another node than the marked one
  kRefused  // the scaled object answers 503
};
// Parses "late" and so on; kNone is "nothing".
std::optional<PoolFault> FindPoolFault(std::string_view name);
std::string PoolFaultNames();

// The state of a pool.
struct PoolState {
  std::string name;
  int min = 0, max = 0;
  int wanted = 0, nodes = 0, coming = 0;
  int made = 0, removed = 0;  // number of nodes since the start
  double node_hours = 0, cost = 0;
};

class Infrastructure final : public Actor {
 public:
  struct Hooks {
    std::function<Status(const NodeSpec&)> join;
    std::function<void(const std::string& node)> leave;  // permanently
  };

  // `checker` and the objects that `env` refers to must outlive the object.
  Infrastructure(const Environment& env, MoveChecker& checker, Hooks hooks);

  // Creates the pool's objects and lets its initial nodes join. Error: kAlreadyExists, or the error
  // of `join`.
  Status Add(const PoolSpec& spec);
  // Error: kNotFound.
  Status SetFault(std::string_view pool, PoolFault fault);
  // The node was deleted by another component and does not come back.
  void SeeLost(const std::string& node);
  // True if a request to this path is refused now, because the scaled object of a pool is failing.
  bool Refuses(std::string_view path) const;
  // The answer to a request that Refuses; nullopt: it goes to the API server.
  std::optional<kube::ApiResponse> Refuse(const kube::ApiRequest& request) const;

  bool any() const { return !pools_.empty(); }
  std::vector<PoolState> States() const;  // sorted by name

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;

 private:
  struct Member {
    std::string name = {};
    std::optional<Time> due = {};  // nullopt: it does not join
    bool wrong = false;
    std::optional<Time> joined = {};
  };
  struct Pool {
    PoolSpec spec;
    PoolFault fault = PoolFault::kNone;
    Time refused_until{};
    int wanted = 0, reported = -1;  // `reported`: the number of nodes last written
    int made = 0, removed = 0, asked = 0;
    double node_seconds = 0;  // of removed nodes
    std::vector<Member> members;
    int There() const;
    PoolBounds Bounds() const { return {spec.name, spec.min, spec.max}; }
  };
  // The requested number of nodes in the API server.
  struct Wanted {
    cluster::ObjectMeta meta;
    std::optional<int> replicas;
  };
  static Status ReadWanted(JsonSource json, Wanted& to);

  bool Follow(Pool& pool);
  bool JoinDue(Pool& pool);
  bool ReportCount(Pool& pool);
  void Ask(Pool& pool);
  Member& Enter(Pool& pool);
  Status Join(const Pool& pool, Member& member);
  template <typename Holds>
  size_t Newest(const Pool& pool, const Holds& holds) const;
  void RemoveOne(Pool& pool);
  bool IsNamed(const Pool& pool, const Member& member);
  void Forget(Pool& pool, size_t member);
  bool MayCome(const Pool& pool) const;
  void ScheduleRefusals(const std::string& pool);
  void Note(const std::string& what) { env_.log.Note(name_, what); }

  std::string name_ = "infrastructure";
  Environment env_;
  MoveChecker& checker_;
  Hooks hooks_;
  kube::Client client_;
  kube::Cache<Wanted> sets_;
  std::map<std::string, Pool, std::less<>> pools_;
};

}  // namespace nos::sim
